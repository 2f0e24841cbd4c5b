"""`Transaction` and `TransactionStats`, where programs of zlmdb <= 26 import them from."""

from .store.transaction import Transaction as Transaction
from .store.transactionstats import TransactionStats as TransactionStats
