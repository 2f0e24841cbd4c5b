"""The demonstration: the world's cities in typed maps, once per serializer, with questions and measurements."""

from .cities import City as City
from .cities import DemoError as DemoError
from .session import run as run
from .world import Cities as Cities
from .world import World as World

__all__ = ["Cities", "City", "DemoError", "World", "run"]
