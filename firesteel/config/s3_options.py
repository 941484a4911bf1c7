"""The configuration options of S3 as a file system."""

from __future__ import annotations

from firesteel.common.time import Duration
from firesteel.config.option import ConfigOptions

__all__ = [
    "S3_ACCESS_KEY",
    "S3_ENDPOINT",
    "S3_PATH_STYLE_ACCESS",
    "S3_REGION",
    "S3_SECRET_KEY",
    "S3_SESSION_TOKEN",
    "S3_UPLOAD_CONCURRENCY",
    "S3_UPLOAD_PART_SIZE",
    "S3_UPLOAD_TIMEOUT",
]

_key = ConfigOptions.key

S3_ENDPOINT = (
    _key("s3.endpoint")
    .string_type()
    .no_default_value()
    .with_description("The endpoint of the S3 service, if it is not Amazon's.")
)
S3_ACCESS_KEY = (
    _key("s3.access-key")
    .string_type()
    .no_default_value()
    .with_deprecated_keys("s3.access.key")
    .with_description("The access key for S3; default: credentials from the environment or the AWS profile.")
)
S3_SECRET_KEY = (
    _key("s3.secret-key")
    .string_type()
    .no_default_value()
    .with_deprecated_keys("s3.secret.key")
    .with_description("The secret key for S3.")
)
S3_SESSION_TOKEN = (
    _key("s3.session.token")
    .string_type()
    .no_default_value()
    .with_description("The session token of temporary credentials for S3.")
)
S3_REGION = (
    _key("s3.endpoint.region").string_type().no_default_value().with_description("The region of the S3 service.")
)
S3_PATH_STYLE_ACCESS = (
    _key("s3.path.style.access")
    .boolean_type()
    .default_value(False)
    .with_deprecated_keys("s3.path-style-access")
    .with_description(
        "Whether the bucket is part of the path instead of the host name; most services other than Amazon's require it."
    )
)
S3_UPLOAD_PART_SIZE = (
    _key("s3.upload.min.part.size")
    .int_type()
    .default_value(5 * 1024 * 1024)
    .with_description("Part size of multipart uploads by a sink; at least 5 MB.")
)
S3_UPLOAD_CONCURRENCY = (
    _key("s3.upload.max.concurrent.uploads")
    .int_type()
    .default_value(4)
    .with_description("Number of parts that a sink subtask uploads concurrently. In Flink: the number of cores.")
)
S3_UPLOAD_TIMEOUT = (
    _key("s3.upload.timeout")
    .duration_type()
    .default_value(Duration.of_minutes(1))
    .with_description("Time for which a failed S3 request of a sink is retried before the task fails. Not in Flink.")
)
