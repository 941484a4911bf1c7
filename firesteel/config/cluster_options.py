"""The configuration options of a cluster."""

from __future__ import annotations

from firesteel.common.time import Duration
from firesteel.config.memory_size import MemorySize
from firesteel.config.option import ConfigOptions

__all__ = [
    "CLUSTER_DIRECTORY",
    "CLUSTER_ID",
    "FLAMEGRAPH_DELAY",
    "FLAMEGRAPH_ENABLED",
    "FLAMEGRAPH_REFRESH",
    "FLAMEGRAPH_SAMPLES",
    "HA_LEASE_DURATION",
    "HA_MODE",
    "HA_STORAGE_DIR",
    "HA_ZOOKEEPER_QUORUM",
    "HA_ZOOKEEPER_ROOT",
    "HA_ZOOKEEPER_SESSION_TIMEOUT",
    "JOB_STORE_CAPACITY",
    "JOB_STORE_EXPIRATION",
    "METRICS_INTERVAL",
    "PROGRAM_TIMEOUT",
    "PROMETHEUS_ENABLED",
    "QUERYABLE_STATE_ENABLED",
    "REST_ADDRESS",
    "REST_AUTHENTICATE_READS",
    "REST_BIND_ADDRESS",
    "REST_BIND_PORT",
    "REST_MAX_CONTENT_LENGTH",
    "REST_PATH",
    "REST_PORT",
    "REST_TOKEN_FILE",
    "SLOT_MEMORY",
    "SQL_GATEWAY_ADDRESS",
    "SQL_GATEWAY_BIND_ADDRESS",
    "SQL_GATEWAY_BIND_PORT",
    "SQL_GATEWAY_PORT",
    "SQL_GATEWAY_SESSION_CHECK_INTERVAL",
    "SQL_GATEWAY_SESSION_IDLE_TIMEOUT",
    "SQL_GATEWAY_SESSION_MAX_NUM",
    "SQL_GATEWAY_WORKER_THREADS_MAX",
    "SSL_INTERNAL_CA",
    "SSL_INTERNAL_CERTIFICATE",
    "SSL_INTERNAL_ENABLED",
    "SSL_INTERNAL_KEY",
    "SSL_REST_AUTHENTICATION",
    "SSL_REST_CA",
    "SSL_REST_CERTIFICATE",
    "SSL_REST_ENABLED",
    "SSL_REST_KEY",
    "TASK_SLOTS",
    "WEB_ALLOW_ORIGIN",
    "WEB_CANCEL_ENABLED",
    "WEB_REFRESH_INTERVAL",
    "WEB_SUBMIT_ENABLED",
    "WEB_UPLOAD_DIRECTORY",
]

_key = ConfigOptions.key

REST_ADDRESS = (
    _key("rest.address")
    .string_type()
    .default_value("localhost")
    .with_description("The address at which clients reach the JobManager.")
)
REST_PORT = (
    _key("rest.port")
    .int_type()
    .default_value(8081)
    .with_description("The port to which clients connect. The JobManager listens on it unless rest.bind-port is set.")
)
REST_BIND_ADDRESS = (
    _key("rest.bind-address")
    .string_type()
    .default_value("localhost")
    .with_description(
        "The address on which the JobManager listens. If it is not a loopback address, requests that change "
        "something require a token or a client certificate."
    )
)
REST_BIND_PORT = (
    _key("rest.bind-port")
    .string_type()
    .no_default_value()
    .with_description(
        "The port on which the JobManager listens; the first free port of a range such as 8081-8090, "
        "or 0 for any free port."
    )
)
REST_PATH = (
    _key("rest.path")
    .string_type()
    .no_default_value()
    .with_description("Prefix of all REST paths, for a JobManager behind a proxy.")
)
REST_MAX_CONTENT_LENGTH = (
    _key("rest.server.max-content-length")
    .memory_type()
    .default_value(MemorySize.parse("100 mb"))
    .with_description("Maximum size of a request body.")
)
REST_TOKEN_FILE = (
    _key("rest.token-file")
    .string_type()
    .no_default_value()
    .with_description(
        "File with the token for requests (Authorization: Bearer …); it must be readable only by its owner. By "
        "default, each cluster generates a token in its directory."
    )
)
REST_AUTHENTICATE_READS = (
    _key("rest.authentication.reads")
    .boolean_type()
    .no_default_value()
    .with_description(
        "Whether read requests require the token or a client certificate. By default they do, except for requests "
        "from the JobManager's own user on its machine."
    )
)
SSL_REST_ENABLED = (
    _key("security.ssl.rest.enabled")
    .boolean_type()
    .default_value(False)
    .with_description("Whether the REST port uses TLS.")
)
SSL_REST_AUTHENTICATION = (
    _key("security.ssl.rest.authentication-enabled")
    .boolean_type()
    .default_value(False)
    .with_description(
        "Whether clients must present a certificate issued by security.ssl.rest.ca, which replaces the token."
    )
)
SSL_REST_CERTIFICATE = (
    _key("security.ssl.rest.certificate")
    .string_type()
    .no_default_value()
    .with_description("The certificate of this process, a PEM file. Flink uses key stores instead.")
)
SSL_REST_KEY = (
    _key("security.ssl.rest.key")
    .string_type()
    .no_default_value()
    .with_description("The private key of the certificate, a PEM file.")
)
SSL_REST_CA = (
    _key("security.ssl.rest.ca")
    .string_type()
    .no_default_value()
    .with_description("The certificate authorities to trust, a PEM file.")
)
SSL_INTERNAL_ENABLED = (
    _key("security.ssl.internal.enabled")
    .boolean_type()
    .default_value(False)
    .with_description(
        "Whether connections between slots, and between slots and the JobMaster, are encrypted. They are "
        "authenticated in any case."
    )
)
SSL_INTERNAL_CERTIFICATE = (
    _key("security.ssl.internal.certificate")
    .string_type()
    .no_default_value()
    .with_description(
        "The certificate with which slots and the JobMaster authenticate, a PEM file on every host. Flink uses key "
        "stores instead."
    )
)
SSL_INTERNAL_KEY = (
    _key("security.ssl.internal.key")
    .string_type()
    .no_default_value()
    .with_description("The private key of security.ssl.internal.certificate, a PEM file on every host.")
)
SSL_INTERNAL_CA = (
    _key("security.ssl.internal.ca")
    .string_type()
    .no_default_value()
    .with_description(
        "The certificate authorities that slots and the JobMaster trust, a PEM file on every host. Host names are "
        "not verified: use a private certificate authority."
    )
)
WEB_REFRESH_INTERVAL = (
    _key("web.refresh-interval")
    .duration_type()
    .default_value(Duration.of_millis(3000))
    .with_description("Refresh interval of the web UI.")
)
WEB_ALLOW_ORIGIN = (
    _key("web.access-control-allow-origin")
    .string_type()
    .no_default_value()
    .with_description(
        "The site whose pages may read responses, or * for all (Access-Control-Allow-Origin). In Flink: *."
    )
)
WEB_SUBMIT_ENABLED = (
    _key("web.submit.enable")
    .boolean_type()
    .default_value(True)
    .with_description("Whether programs can be uploaded and run in the web UI.")
)
WEB_CANCEL_ENABLED = (
    _key("web.cancel.enable")
    .boolean_type()
    .default_value(True)
    .with_description("Whether jobs can be cancelled in the web UI.")
)
WEB_UPLOAD_DIRECTORY = (
    _key("web.upload.dir")
    .string_type()
    .no_default_value()
    .with_description("The directory for uploaded programs; default: in the cluster's directory.")
)
PROGRAM_TIMEOUT = (
    _key("web.program.timeout")
    .duration_type()
    .default_value(Duration.of_minutes(1))
    .with_description("Maximum time for an uploaded program to submit its job.")
)
FLAMEGRAPH_ENABLED = (
    _key("rest.flamegraph.enabled")
    .boolean_type()
    .default_value(True)
    .with_description(
        "Whether flame graphs are available. Disabled in Flink by default; here it costs nothing unless a flame "
        "graph is requested."
    )
)
FLAMEGRAPH_SAMPLES = (
    _key("rest.flamegraph.num-samples")
    .int_type()
    .default_value(100)
    .with_description("Number of samples of a flame graph.")
)
FLAMEGRAPH_DELAY = (
    _key("rest.flamegraph.delay-between-samples")
    .duration_type()
    .default_value(Duration.of_millis(50))
    .with_description("The time between two samples.")
)
FLAMEGRAPH_REFRESH = (
    _key("rest.flamegraph.refresh-interval")
    .duration_type()
    .default_value(Duration.of_minutes(1))
    .with_description("Time after which a flame graph is sampled again.")
)
QUERYABLE_STATE_ENABLED = (
    _key("queryable-state.enable")
    .boolean_type()
    .default_value(True)
    .with_description("Whether the keyed state of running jobs can be queried over REST.")
)
JOB_STORE_EXPIRATION = (
    _key("jobstore.expiration-time")
    .int_type()
    .default_value(3600)
    .with_description("Number of seconds for which an ended job is kept in the job list.")
)
JOB_STORE_CAPACITY = (
    _key("jobstore.max-capacity")
    .int_type()
    .default_value(1000)
    .with_description("Maximum number of ended jobs in the job list.")
)
TASK_SLOTS = (
    _key("taskmanager.numberOfTaskSlots")
    .int_type()
    .no_default_value()
    .with_description("Number of slots of an embedded Spark; default: the number of cores, at least 4.")
)
SLOT_MEMORY = (
    _key("taskmanager.memory.slot.size")
    .memory_type()
    .no_default_value()
    .with_description(
        "Memory limit of a slot's process. If it is exceeded, the job fails with an error that names the slot. No "
        "limit by default."
    )
)
CLUSTER_ID = (
    _key("high-availability.cluster-id")
    .string_type()
    .default_value("default")
    .with_description("Identifies the cluster among those that share a directory or a ZooKeeper.")
)
HA_MODE = (
    _key("high-availability.type")
    .choice_type("filesystem", "zookeeper")
    .default_value("filesystem")
    .with_description(
        "Leader election of JobManagers: by leases in the storage directory, which must be shared and support atomic "
        "renames, or with ZooKeeper."
    )
)
HA_STORAGE_DIR = (
    _key("high-availability.storageDir")
    .string_type()
    .no_default_value()
    .with_description(
        "The directory in which jobs are persisted for recovery; default: in the cluster's directory. Also used for "
        "checkpoints if execution.checkpointing.dir is not set."
    )
)
HA_LEASE_DURATION = (
    _key("high-availability.filesystem.lease-duration")
    .duration_type()
    .default_value(Duration.of_seconds(5))
    .with_description("Time without a lease renewal after which another JobManager takes over.")
)
HA_ZOOKEEPER_QUORUM = (
    _key("high-availability.zookeeper.quorum")
    .string_type()
    .no_default_value()
    .with_description("The ZooKeeper servers: host:port,host:port.")
)
HA_ZOOKEEPER_ROOT = (
    _key("high-availability.zookeeper.path.root")
    .string_type()
    .default_value("/firesteel")
    .with_description("The root node in ZooKeeper.")
)
HA_ZOOKEEPER_SESSION_TIMEOUT = (
    _key("high-availability.zookeeper.client.session-timeout")
    .duration_type()
    .default_value(Duration.of_seconds(6))
    .with_description("The ZooKeeper session timeout, after which another JobManager takes over. In Flink: 1 min.")
)
METRICS_INTERVAL = (
    _key("metrics.fetcher.update-interval")
    .duration_type()
    .default_value(Duration.of_millis(500))
    .with_description("Interval at which slots report metrics.")
)
PROMETHEUS_ENABLED = (
    _key("metrics.prometheus.enabled")
    .boolean_type()
    .default_value(True)
    .with_description("Whether GET /metrics returns all metrics in the Prometheus format.")
)
CLUSTER_DIRECTORY = (
    _key("cluster.directory")
    .string_type()
    .no_default_value()
    .with_description(
        "Directory for the logs, the token and, by default, the jobs of a cluster; default: firesteel/<cluster id> "
        "in $XDG_STATE_HOME or ~/.local/state."
    )
)
SQL_GATEWAY_ADDRESS = (
    _key("sql-gateway.endpoint.rest.address")
    .string_type()
    .no_default_value()
    .with_description("The address at which clients reach the SQL Gateway; default: rest.address.")
)
SQL_GATEWAY_BIND_ADDRESS = (
    _key("sql-gateway.endpoint.rest.bind-address")
    .string_type()
    .no_default_value()
    .with_description("The address on which the SQL Gateway listens on its own port; default: rest.bind-address.")
)
SQL_GATEWAY_PORT = (
    _key("sql-gateway.endpoint.rest.port")
    .int_type()
    .default_value(8083)
    .with_description(
        "The port of the SQL Gateway. firesteel sql-gateway listens on it. A JobManager has the gateway on its REST "
        "port, and on this port in addition if this option or the bind port is set."
    )
)
SQL_GATEWAY_BIND_PORT = (
    _key("sql-gateway.endpoint.rest.bind-port")
    .string_type()
    .no_default_value()
    .with_description(
        "The port on which the SQL Gateway listens, instead of sql-gateway.endpoint.rest.port: a port, a range such as "
        "8083-8090, or 0 for any free port."
    )
)
SQL_GATEWAY_SESSION_IDLE_TIMEOUT = (
    _key("sql-gateway.session.idle-timeout")
    .duration_type()
    .default_value(Duration.of_minutes(10))
    .with_description("Time without a request after which a SQL session is closed. 0: sessions are not closed.")
)
SQL_GATEWAY_SESSION_CHECK_INTERVAL = (
    _key("sql-gateway.session.check-interval")
    .duration_type()
    .default_value(Duration.of_minutes(1))
    .with_description("Interval at which idle SQL sessions are looked for. 0: they are not.")
)
SQL_GATEWAY_SESSION_MAX_NUM = (
    _key("sql-gateway.session.max-num")
    .int_type()
    .default_value(1_000_000)
    .with_description("Maximum number of open SQL sessions. 0: no maximum.")
)
SQL_GATEWAY_WORKER_THREADS_MAX = (
    _key("sql-gateway.worker.threads.max")
    .int_type()
    .default_value(500)
    .with_description("Maximum number of SQL statements that are executed at the same time; others wait.")
)
