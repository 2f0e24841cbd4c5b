"""Operations on a whole database: copies, checks, dumps, conversions, migrations."""
