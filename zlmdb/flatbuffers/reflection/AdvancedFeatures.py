"""`AdvancedFeatures` of a binary schema."""

from __future__ import annotations


class AdvancedFeatures:
    """What a schema uses that old code generators do not support, as bits."""

    AdvancedArrayFeatures, AdvancedUnionFeatures, OptionalScalars, DefaultVectorsAndStrings = 1, 2, 4, 8
