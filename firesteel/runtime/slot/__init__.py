"""The process of a slot: its mailbox, its network, its connection to the JobMaster."""
