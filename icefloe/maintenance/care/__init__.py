"""What a table needs: its health, the steps that pay, and repair of what is broken."""
