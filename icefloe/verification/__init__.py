"""Verification: whether all parts of a table, from its metadata to its rows, fit together."""

from icefloe.verification.codes import Code, Level, Severity
from icefloe.verification.progress import Listener, Progress, ProgressBar, silent
from icefloe.verification.report import Figures, Finding, VerificationReport
from icefloe.verification.verify import verify
