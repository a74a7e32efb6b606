import type { RevocationKey, RevocationMade, RevokedTokens } from '../../../policy/index.js';
import type { EnginePool } from '../../engine/index.js';

/** State of one process of a server, for its operators. Times are RFC 3339; it contains no literal of a question. */
export interface ProcessView {
  /** `server`, or `worker 2`. */
  readonly process: string;
  readonly pid: number;
  readonly since: string;
  /** Takes no new sessions, and is not ready. */
  readonly draining: boolean;
  readonly manifest: string;
  /** Null: none serves, and everything is refused. */
  readonly policy: string | null;
  /** End of the time for which the last valid policy replaces the newest; null if the newest or none is served. */
  readonly policy_kept_until: string | null;
  /** The fault of the newest policy, and its place; null while it serves. */
  readonly policy_fault: string | null;
  readonly audit: AuditView;
  readonly sessions: readonly SessionView[];
  readonly pools: readonly PoolView[];
  readonly caches: readonly CacheView[];
  /** Entities and bridges whose table or column is gone. */
  readonly out_of_service: readonly string[];
}

/** A session of the wire, or a request over HTTP that is being answered. */
export interface SessionView {
  /** By which it is cancelled or ended: the process id of the session, or the id of the request. */
  readonly id: string;
  readonly process: string;
  readonly surface: 'wire' | 'rest' | 'mcp';
  /** The login of the wire; null elsewhere. */
  readonly user: string | null;
  /** Null while the caller is not authenticated. */
  readonly subject: string | null;
  readonly chain: readonly string[];
  /** Id by which its token is revoked; null while the caller is not authenticated. */
  readonly token_id: string | null;
  readonly application: string | null;
  readonly since: string;
  /** As `pg_stat_activity` has it. */
  readonly state: string;
  /** Since when it is in that state. */
  readonly state_since: string;
  /** Redacted text of the running statement, without literals and undeclared names; null if nothing runs. */
  readonly shape: string | null;
  /** Fingerprint of the shape; null if there is none. */
  readonly fingerprint: string | null;
  /** Objects that a question on the fast path reads; its text is not kept. */
  readonly objects: readonly string[];
}

export interface PoolView extends EnginePool {
  readonly process: string;
  readonly connector: string;
}

export interface CacheView {
  readonly process: string;
  readonly cache: string;
  readonly entries: number;
  readonly bytes: number;
  readonly hits: number;
  readonly misses: number;
}

interface AuditView {
  readonly records: number;
  /** Records that are not on the disk yet. */
  readonly waiting: number;
  /** Records that no signed checkpoint covers yet. */
  readonly unanchored: number;
  /** Reason why the log refuses records; null while it works. */
  readonly failing: string | null;
}

/** Commands for a session or a request. */
export type SessionCommand = 'cancel' | 'end';

/** Result of a reload: what is served now, and changes that could not be applied; or why nothing changed. */
export type ReloadView =
  | { readonly reloaded: true; readonly now: readonly string[]; readonly kept: readonly string[] }
  | { readonly reloaded: false; readonly why: string };

/** The whole server, by way of one of its processes. */
export interface ServerOperations {
  views(): Promise<readonly ProcessView[]>;
  /** False if no process has it. */
  command(id: string, what: SessionCommand): Promise<boolean>;
  /** All processes take no new sessions, or do again. */
  drain(on: boolean): Promise<void>;
  reload(): Promise<ReloadView>;
  /** As SIGTERM does. */
  stop(): void;
}

/** Revoking of tokens, for all processes of all gateways. */
export interface RevokingParts {
  readonly revocations: {
    readonly revoked: Pick<RevokedTokens, 'all'>;
    revoke(what: RevocationKey): Promise<RevocationMade>;
  };
}
