"""The operations that the walker and the encoder know, and the statuses that the walker ends with."""

# The numbers are compiled into cached kernels: never reuse one for another meaning.
LONG = 0  # column
SKIP_LONG = 1
UNION = 2  # branches, where each goes
BYTES = 3  # column
SKIP_BYTES = 4
LAST_VARINT_OP = 4  # all up to here begin by reading a number
PAIRS = (
    8  # mode, first column or column of the length, keys or list, where keys start or stream of keys, stream of values
)
END = 9
JUMP = 10  # where
BOOL = 11  # column
FLOAT = 12  # column
DOUBLE = 13  # column
FIXED = 14  # column, length
SKIP = 15  # bytes
ENTER = 16  # list, or -1
LOOP = 17  # list or -1, column of its length, fewest bytes of an item, where to go after the last
EMPTY_ITEMS = 18
MARK = 19  # column

# Modes of PAIRS: keys and values to streams, or values of wanted keys to columns; values are numbers or bytes.
SPREAD_LONG = 0
SPREAD_BYTES = 1
PAIRS_LONG = 2
PAIRS_BYTES = 3

# What the encoder puts. All but END, RAW and NEXT start with: where the column starts, where its marks start (or -1),
# whether it is optional.
PUT_END = 0
PUT_LONG = 1
PUT_BOOL = 2
PUT_FLOAT = 3
PUT_DOUBLE = 4
PUT_TEXT = 5
PUT_FIXED = 6  # length
PUT_RAW = 7  # bytes, then each
PUT_IF = 8  # where to go if null
PUT_PAIRS_LONG = 9  # where keys start, where values start
PUT_PAIRS_TEXT = 10
PUT_EACH = 12  # where to go if there are no items
PUT_NEXT = 13  # where the items' operations start

STATUS_OK = 0
STATUS_GROW = 1
STATUS_BAD_VARINT = 2
STATUS_BAD_LENGTH = 3
STATUS_BAD_COUNT = 4
STATUS_BAD_BRANCH = 5
STATUS_BAD_BOOLEAN = 6
STATUS_LEFT_OVER = 7

PROBLEMS = {
    STATUS_BAD_VARINT: "a number is cut off or has more than 64 bits",
    STATUS_BAD_LENGTH: "a value is longer than the bytes that are left of its block",
    STATUS_BAD_COUNT: "a count is negative or larger than the bytes that are left could hold",
    STATUS_BAD_BRANCH: "a union names a branch that it does not have",
    STATUS_BAD_BOOLEAN: "a boolean is neither 0 nor 1",
    STATUS_LEFT_OVER: "a block ends before or after its last row, or without the file's sync marker",
}
