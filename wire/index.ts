/** The Postgres protocol, versions 3.0 to 3.2, for implementations of `Handler`. Independent of SQL and policy. */

export type { CancelDirectory } from './cancel-keys.js';
export { error, fatal, WireError, wrongPassword } from './errors.js';
export type {
  Awaitable,
  Bind,
  ColumnDescription,
  FastAnswer,
  FastLane,
  FetchResult,
  FormatCode,
  Handler,
  IdleLimit,
  NamedPortal,
  Portal,
  RefusedEvent,
  RowWriter,
  SeriesEnd,
  SessionControl,
  SessionHandler,
  SimpleStatement,
  TransactionStatus,
  WireLogin,
  WireNotice,
  WireStatement,
} from './handler.js';
export { FrameDecoder } from './input.js';
export type { WireOptions, WireTls } from './options.js';
export { makeScramVerifier, readScramVerifier } from './scram.js';
export { createWireServer, type WireServer } from './server.js';
export { encodingName } from './text-encoding.js';
