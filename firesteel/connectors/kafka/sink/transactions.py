"""Transaction client: lists, commits and aborts Kafka transactions of other producers.

librdkafka ends only the transactions of a producer that lives. Finishing one whose process is gone takes three requests
that it has no call for: DescribeTransactions, ListTransactions and EndTxn. They are sent with kafka-python, and this
module alone knows of it.

What brokers answer (Kafka 4.1, a producer of librdkafka; EndTxn of version 4, so that epochs stay as they are):

====================================  ==============================  ===================================
state of the transactional id         DescribeTransactions            EndTxn(commit), same id and epoch
====================================  ==============================  ===================================
unknown                               TransactionalIdNotFound         InvalidProducerIdMapping
initialised, no transaction yet       Empty, start -1                 InvalidTxnState
records written                       Ongoing, start                  success
committed                             PrepareCommit, CompleteCommit   success, again and again
aborted with EndTxn                   PrepareAbort, CompleteAbort     InvalidTxnState
timed out, or aborted by ``abort``    CompleteAbort, epoch + 1        ProducerFenced
initialised again by another client   Empty, epoch + 1 or 2           ProducerFenced
a later transaction of the producer   Ongoing, another start          success: **commits the later one**
====================================  ==============================  ===================================

The last line is why a prepared transaction is known by its start and its partitions too, and described before it is
ended. The start is the coordinator's time, to the millisecond, and may be less than that of the transaction before: the
clock was set back, or a broker that lags has become coordinator. The protocol has no sequence of transactions.
"""

from __future__ import annotations

import hashlib
import logging
import threading
import time
import warnings
import weakref
from collections.abc import Awaitable, Callable, Iterable, Mapping
from enum import Enum
from typing import Any, NamedTuple, TypeVar

from firesteel.common.errors import InvalidProgramError
from firesteel.connectors.kafka.client_errors import (
    BrokerUnavailableError,
    KafkaAuthorizationError,
    KafkaClientError,
    find_refusal,
)
from firesteel.connectors.kafka.sink.wire_properties import TokenProvider, wire_arguments

__all__ = ["Outcome", "PreparedTransaction", "TransactionCoordinators", "TransactionDescription", "close_client"]

DEADLINE_S = 30.0
"""How long brokers may be away while a transaction is asked for or ended."""
REQUEST_TIMEOUT_S = 10.0
BOOTSTRAP_TIMEOUT_S = 5.0
"""How long one of the bootstrap servers, chosen at random, is waited for: it may be one that hangs."""
_FIRST_WAIT_S = 0.005
_MAX_WAIT_S = 1.0
_END_TIMEOUT_S = 5.0
_END_TXN_VERSION = 4
_INIT_VERSION = 4
_log = logging.getLogger(__name__)

_sockets: weakref.WeakKeyDictionary[Any, weakref.WeakSet[Any]] = weakref.WeakKeyDictionary()
"""What each client of kafka-python, known by its event loop, has opened."""

T = TypeVar("T")


class PreparedTransaction(NamedTuple):
    """A transaction with all its records written and acknowledged, that is to be committed."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    start_time_ms: int
    partitions: str = ""
    """A digest of the partitions written to; empty in checkpoints of earlier versions."""

    def is_described_by(self, found: TransactionDescription) -> bool:
        """Whether a description is of this one, and not of a later transaction of the same producer."""
        if (found.producer_id, found.start_time_ms) != (self.producer_id, self.start_time_ms):
            return False
        # those of an ended one are not returned
        return found.state != "Ongoing" or self.partitions in ("", found.partitions)


class TransactionDescription(NamedTuple):
    """The coordinator's description of the last transaction of a transactional id."""

    state: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    start_time_ms: int
    partitions: str = ""
    """A digest of the partitions that are in an ongoing transaction."""


class Outcome(Enum):
    """What has become of a prepared transaction."""

    OPEN = "open"
    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "unknown"
    """The coordinator has forgotten the transactional id, as it does some days after its last transaction."""

    @staticmethod
    def of(prepared: PreparedTransaction, found: TransactionDescription | None) -> Outcome:
        """Derives it from a description."""
        if found is None or found.state == "Dead":
            return Outcome.UNKNOWN
        if found.producer_id != prepared.producer_id:
            # ids are never used again by another writer: the coordinator had forgotten this one
            return Outcome.UNKNOWN
        is_later = found.start_time_ms > 0 and not prepared.is_described_by(found)
        if found.state in ("PrepareCommit", "CompleteCommit") or is_later:
            # a producer begins another transaction only once the one before is committed
            return Outcome.COMMITTED
        if found.state == "Ongoing" and found.producer_epoch == prepared.producer_epoch:
            return Outcome.OPEN
        return Outcome.ABORTED


class TransactionCoordinators:
    """Asks the brokers that coordinate transactions; from any thread. Opens its connection with the first question."""

    def __init__(self, properties: Mapping[str, Any]):
        self._servers = properties["bootstrap.servers"]
        self._properties = properties
        self._may_be_refused = True
        self._arguments = wire_arguments(properties)
        self._client_class, self._errors = _kafka_python()
        self._client: Any = None
        self._lock = threading.RLock()
        self._closed = False

    def describe(self, transactional_id: str) -> TransactionDescription | None:
        """The last transaction of an id; None if the coordinator knows none."""

        def ask(client: Any) -> TransactionDescription | None:
            try:
                found = client.describe_transactions([transactional_id])[transactional_id]
            except self._errors.TransactionalIdNotFoundError:
                return None
            return TransactionDescription(
                found.state.value,
                found.producer_id,
                found.producer_epoch,
                found.transaction_timeout_ms,
                found.transaction_start_time_ms,
                _digest(found.topic_partitions),
            )

        return self._retry(ask, f"ask for the transaction '{transactional_id}'")

    def list_ongoing(self, prefix: str) -> list[str]:
        """The ids with this beginning that have a transaction which is neither committed nor aborted."""

        def ask(client: Any) -> list[str]:
            found = client.list_transactions(state_filters=["Ongoing"])
            ids = (each.transactional_id for listed in found.values() for each in listed)
            return sorted(each for each in ids if each.startswith(prefix))

        return self._retry(ask, f"list the transactions that begin with '{prefix}'")

    def commit(self, prepared: PreparedTransaction) -> Outcome:
        """Commits a transaction, if it is still open; returns its state before."""
        from kafka.protocol.producer.transaction import EndTxnRequest

        outcome = Outcome.of(prepared, self.describe(prepared.transactional_id))
        if outcome is not Outcome.OPEN:
            return outcome
        request = EndTxnRequest(
            transactional_id=prepared.transactional_id,
            producer_id=prepared.producer_id,
            producer_epoch=prepared.producer_epoch,
            committed=True,
            max_version=_END_TXN_VERSION,
        )
        try:
            self._ask_coordinator(prepared.transactional_id, request, "commit")
        except self._refusals():
            # aborted since it was described: timed out in this very moment
            return Outcome.of(prepared, self.describe(prepared.transactional_id))
        return Outcome.OPEN

    def abort(self, transactional_id: str) -> None:
        """Aborts the transaction of an id, and keeps its producer from ever writing again.

        InitProducerId raises the epoch, which fences the producer: EndTxn alone would let one that still lives write on
        into a transaction that is never ended. The request is made once: a second one would start over, and the
        coordinator forget when the transaction had started.
        """
        from kafka.protocol.producer.transaction import InitProducerIdRequest

        has_begun = self._errors.ConcurrentTransactionsError

        deadline = time.monotonic() + DEADLINE_S
        wait_s = _FIRST_WAIT_S
        while True:
            found = self.describe(transactional_id)
            if found is None or found.state not in ("Ongoing", "PrepareEpochFence", "PrepareAbort", "PrepareCommit"):
                return
            if found.state == "Ongoing":
                request = InitProducerIdRequest(
                    transactional_id=transactional_id,
                    transaction_timeout_ms=found.timeout_ms,
                    producer_id=-1,
                    producer_epoch=-1,
                    max_version=_INIT_VERSION,
                )
                try:
                    self._ask_coordinator(transactional_id, request, "abort", given_up=has_begun)
                except has_begun:
                    pass
            if self._closed or time.monotonic() > deadline:
                raise BrokerUnavailableError(
                    f"The transaction '{transactional_id}' is still {found.state} {DEADLINE_S:g} s after it was "
                    f"aborted, at {self._servers}.",
                    hint="The leader of a partition that it wrote to is away.",
                )
            time.sleep(wait_s)
            wait_s = min(wait_s * 2, _MAX_WAIT_S)

    def longest_timeout_ms(self) -> int | None:
        """The maximum transaction.timeout.ms that a broker allows; None if it does not return it."""
        from kafka.admin import ConfigResource, ConfigResourceType

        name = "transaction.max.timeout.ms"
        try:
            client = self._connected()
            broker = str(next(iter(client._manager.cluster.brokers())).node_id)
            resource = ConfigResource(ConfigResourceType.BROKER, broker, [name])
            found = client.describe_configs([resource], config_filter="all")
            return int(found["broker"][broker][name]["value"])
        except Exception:  # noqa: BLE001 - it is for a message only, and may not be permitted
            return None

    def close(self) -> None:
        """Closes the connections; another thread that waits for an answer gets an error."""
        self._closed = True
        self._disconnect()

    def _disconnect(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            close_client(client)

    def _ask_coordinator(
        self, transactional_id: str, request: Any, doing: str, given_up: type[Exception] | None = None
    ) -> None:
        """Sends a request to the coordinator of an id; raises the error that the response has."""
        from kafka.protocol.metadata import CoordinatorType

        def ask(client: Any) -> None:
            async def send() -> Any:
                found: Awaitable[Any] = client._find_coordinator_ids(
                    [transactional_id], key_type=CoordinatorType.TRANSACTION
                )
                return await client._manager.send(request, node_id=(await found)[transactional_id])

            error = self._errors.for_code(client._manager.run(send).error_code)
            if error is not self._errors.NoError:
                raise error(f"for transactional id '{transactional_id}'")

        self._retry(ask, f"{doing} the transaction '{transactional_id}'", given_up)

    def _retry(self, ask: Callable[[Any], T], doing: str, given_up: type[Exception] | None = None) -> T:
        """Asks until there is an answer: brokers that are away, or have just become coordinators, are waited for."""
        errors = self._errors
        deadline = time.monotonic() + DEADLINE_S
        wait_s = _FIRST_WAIT_S
        while True:
            try:
                with self._lock:
                    return ask(self._connected())
            except self._refusals():
                raise
            except (errors.RetriableError, OSError) as error:
                if given_up is not None and isinstance(error, given_up):
                    raise
                if self._closed or time.monotonic() > deadline:
                    raise self._error(doing, error) from error
                _log.debug("cannot %s yet: %r", doing, error)
                if not isinstance(error, errors.ConcurrentTransactionsError):
                    # what is known of coordinators may be old
                    self._disconnect()
            except errors.KafkaError as error:
                raise self._error(doing, error) from error
            time.sleep(wait_s)
            wait_s = min(wait_s * 2, _MAX_WAIT_S)

    def _refusals(self) -> tuple[type[Exception], ...]:
        """The coordinator's description of a transaction that has ended."""
        errors = self._errors
        return errors.InvalidTxnStateError, errors.InvalidProducerIdMappingError, errors.ProducerFencedError

    def _connected(self) -> Any:
        """The client; called with the lock."""
        client = self._client
        if client is None:
            # known before it connects, in its constructor, so that it can be closed meanwhile
            client = self._client = self._client_class.__new__(self._client_class)
            try:
                client.__init__(
                    **self._arguments,
                    request_timeout_ms=int(REQUEST_TIMEOUT_S * 1000),
                    bootstrap_timeout_ms=int(BOOTSTRAP_TIMEOUT_S * 1000),
                    reconnect_backoff_max_ms=1000,
                )
            except BaseException:
                self._disconnect()
                self._raise_if_refused()
                raise
            self._may_be_refused = False
            if self._closed:
                close_client(client)
                raise ConnectionError("closed")
        return client

    def _raise_if_refused(self) -> None:
        """Raises the reason when it first cannot connect: kafka-python retries after any error of a broker."""
        if self._may_be_refused and not self._closed:
            self._may_be_refused = False
            refusal = find_refusal(self._properties, "connect to the coordinator of transactions")
            if refusal is not None:
                raise refusal

    def _error(self, doing: str, error: Exception) -> KafkaClientError:
        errors = self._errors
        name = type(error).__name__
        message = f"Cannot {doing} at {self._servers} ({name}: {error})."
        if isinstance(error, errors.AuthorizationError):
            return KafkaAuthorizationError(
                message,
                code=name,
                hint="Grant the principal WRITE and DESCRIBE on the transactional ids with the sink's prefix.",
            )
        if isinstance(error, errors.SaslAuthenticationFailedError):
            return KafkaAuthorizationError(
                message, code=name, hint="Check sasl.mechanism, sasl.username and sasl.password."
            )
        if isinstance(error, (errors.RetriableError, OSError)):
            return BrokerUnavailableError(
                message, code=name, hint="Check that the brokers run and that bootstrap.servers can be reached."
            )
        return KafkaClientError(message, code=name)


def _digest(partitions: Iterable[tuple[str, int]]) -> str:
    names = sorted(f"{topic}-{partition}" for topic, partition in partitions)
    return hashlib.blake2b("\n".join(names).encode(), digest_size=8).hexdigest()


def close_client(client: Any) -> None:
    """Ends a client, also one that has not come to the end of its constructor: its own close() does not."""
    net = getattr(client, "_net", None)
    if net is None:
        return
    # Its own stop() waits for ever if the thread has not begun yet, and the rest is not made for two threads.
    deadline = time.monotonic() + _END_TIMEOUT_S
    while not net._closed and time.monotonic() < deadline:
        thread = net._io_thread
        if thread is None or thread.ident is None:
            time.sleep(_FIRST_WAIT_S)
            continue
        net._stop = True
        net.wakeup()
        thread.join(_FIRST_WAIT_S)
        if not thread.is_alive():
            break
    net._io_thread = None
    net._fail_pending_waiters(ConnectionError("closed"))
    client._client.close()
    for each in list(_sockets.pop(net, ())):
        # those that still had something to send are left open
        each.close()


def _kafka_python() -> tuple[Any, Any]:
    """The client and its errors; fails with what to install if it is not there."""
    try:
        with warnings.catch_warnings():
            # of how it reads its own files
            warnings.simplefilter("ignore", DeprecationWarning)
            import kafka.admin
            import kafka.errors
            import kafka.net.inet
            import kafka.net.sasl.oauth
            import kafka.net.transport
            import kafka.protocol.metadata
            import kafka.protocol.producer.transaction
    except ImportError as error:
        raise InvalidProgramError(
            "A KafkaSink with DeliveryGuarantee.EXACTLY_ONCE needs the kafka-python package, which cannot be imported: "
            f"{error}.",
            hint="pip install 'firesteel[kafka]', on the driver and on the executors.",
        ) from error
    kafka.net.sasl.oauth.AbstractTokenProvider.register(TokenProvider)
    _close_refused_sockets(kafka.net.inet.KafkaNetSocket)
    _close_untrusted_sockets(kafka.net.transport.KafkaSSLTransport)
    logger = logging.getLogger("kafka")
    if logger.level == logging.NOTSET:
        # each attempt to reach a broker that is away is an ERROR to it
        logger.setLevel(logging.CRITICAL)
    return kafka.admin.KafkaAdminClient, kafka.errors


def _close_refused_sockets(sockets: Any) -> None:
    """Has kafka-python close what could not be connected: until a broker is back it tries again and again."""
    connect = sockets.sock_connect
    if getattr(connect, "closes_refused", False):
        return

    async def connect_or_close(self: Any, net: Any, sock: Any, *arguments: Any, **named: Any) -> Any:
        _sockets.setdefault(net, weakref.WeakSet()).add(sock)
        try:
            return await connect(self, net, sock, *arguments, **named)
        except BaseException:
            sock.close()
            raise

    connect_or_close.closes_refused = True  # type: ignore[attr-defined]
    sockets.sock_connect = connect_or_close


def _close_untrusted_sockets(transports: Any) -> None:
    """Has kafka-python close what one side of it does not trust the other on."""
    handshake = transports.handshake
    if getattr(handshake, "closes_untrusted", False):
        return

    async def handshake_or_close(self: Any) -> None:
        _sockets.setdefault(self._net, weakref.WeakSet()).add(self._sock)
        try:
            await handshake(self)
        except BaseException:
            self._sock.close()
            raise

    handshake_or_close.closes_untrusted = True  # type: ignore[attr-defined]
    transports.handshake = handshake_or_close
