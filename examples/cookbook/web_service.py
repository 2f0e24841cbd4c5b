import asyncio

import zlmdb


class Likes(zlmdb.Schema):
    likes: zlmdb.Table[str, int]


async def like(db: zlmdb.Database[Likes], page: str) -> int:
    return await db.arun(lambda t: t.likes.increment(page))


async def main() -> None:
    with zlmdb.open(None, Likes) as db:
        counts = await asyncio.gather(*(like(db, "/") for _ in range(5)))
        print(sorted(counts))


asyncio.run(main())
