/** The governed and the system engine of a database, which is a native or an embedded Postgres. */

export { withoutLogin, withoutPassword } from '../base/postgres/index.js';
export { sql } from '../base/sql.js';
export { type AnswerBounds, AnswerMemory, LARGE_ROW_BYTES, MemoryShare, noMemory } from './answer-memory.js';
export type { ConnectionChange } from './connection-status.js';
export { unreachableNodes } from './data-nodes.js';
export type { EngineEvents, OpenedEngine, RenewedLogins } from './engine.js';
export { rowScheduler, SLICE_BYTES } from './fair-scheduler.js';
export { FairShare, type FairShareParty } from './fair-share.js';
export type { GovernedEngine } from './governed.js';
export { type EngineConfig, openEngine } from './open.js';
export { type OutOfServiceCause, objectsOutOfService } from './out-of-service.js';
export type { PgliteConfig } from './pglite/engine.js';
export type { EnginePool } from './pool.js';
export { type PostgresConfig, type Survey, surveyPostgres } from './postgres/engine.js';
export { listenOn, type NotificationSubscription } from './postgres/notifications.js';
export { compareStandby, type StandbyComparison } from './postgres/standby/position.js';
export type { StandbyView } from './postgres/standby/standby.js';
export type { StandbyChange, StandbyConfigs } from './postgres/standby/standby-set.js';
export { DataRowReader, dataRow, eachDataRow, textValuesOf } from './protocol/backend-messages.js';
export { GrowingBytes } from './protocol/growing-bytes.js';
export { type ShortAnswer, ShortRun, type ShortStatement } from './short.js';
export { SpoolRoom, type SpoolStats } from './spool/spool.js';
export { SessionReads, type StandbyReads, type StandbySource, StepReads } from './standby-reads.js';
export type {
  BoundValue,
  ExecuteOptions,
  ExecuteResult,
  IsolationLevel,
  OutputSetting,
  PlanSetting,
  RightsSetting,
  RowSink,
  SentValue,
  StatementSettings,
  TransactionSnapshot,
} from './statement.js';
export type { EngineStatus } from './status.js';
export type { SystemEngine, SystemQueries } from './system.js';
export { objectsText, stopError, ValueError } from './upstream-error.js';
export {
  type LoggableError,
  NoSystemCredentials,
  RIGHTS_FAULTS,
  toLoggable,
  type UpstreamError,
  UpstreamFailure,
} from './upstream-report.js';
