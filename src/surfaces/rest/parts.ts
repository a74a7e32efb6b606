import type { AuditLog } from '../../../audit/index.js';
import type { PublishingParts } from '../../ask/authoring/author.js';
import type { AnswerParts, DecidingParts, RunningParts } from '../../ask/index.js';
import type { Probes } from '../../ask/request/probes.js';
import type { AccessRequestParts } from '../../ask/why/request-access.js';
import type { KeptPolicy, PartsReached } from '../../model/served-model.js';
import type { TokenParts } from './routes/token.js';

/** What tells how the service stands, to whoever may know. */
export interface StandingParts extends Pick<DecidingParts, 'model'>, Pick<RunningParts, 'engines'> {
  /** Null while the policy that serves, if any does, is that of the file. */
  keptPolicy(): KeptPolicy | null;
  reached(): PartsReached;
  readonly audit: Pick<AuditLog, 'stats'>;
  /** Whether the server as a whole takes requests, which may be more processes than this one. */
  steady(): boolean;
  /** Whether it takes no new sessions. */
  draining(): boolean;
  readonly probes: Pick<Probes, 'count'>;
}

/** What answers over HTTP: questions, the graph, authors, and how the service stands. */
export interface RestParts
  extends AnswerParts,
    PublishingParts,
    AccessRequestParts,
    StandingParts,
    TokenParts {}
