"""Java classes of ours in Spark's JVM: their source texts, and the one door through which they get there."""
