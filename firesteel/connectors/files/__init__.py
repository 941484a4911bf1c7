"""Files as source and sink, on local disks and in S3."""
