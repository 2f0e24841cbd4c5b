"""Filtering and projection of selections: ``t.users.select().where(F.age > 30).fields("name", "email")``.

`expressions` is what a program writes; `types` checks it against the model class; `loops` makes of it the source of one
flat loop; `filtered` is what iterating, counting and deleting then are.
"""

from .expressions import Condition, F, Field
from .filtered import Filtered, Reads, filtered, preview, projection

__all__ = ["Condition", "F", "Field", "Filtered", "Reads", "filtered", "preview", "projection"]
