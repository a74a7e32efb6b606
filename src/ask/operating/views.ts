import type { RevocationKey, RevocationMade, RevokedTokens } from '../../../policy/index.js';
import type { EnginePool } from '../../engine/index.js';

/** Status of one process. Times are RFC 3339; it contains no literal of a query. */
export interface ProcessView {
  /** `server`, or `worker 2`. */
  readonly process: string;
  readonly pid: number;
  readonly since: string;
  /** True while it accepts no new sessions and is not ready. */
  readonly draining: boolean;
  readonly manifest: string;
  /** Null: none, and every request is refused. */
  readonly policy: string | null;
  /** When the last valid policy expires, if it replaces an invalid newer one. */
  readonly policy_kept_until: string | null;
  /** Fault in the newest policy, with its place; null if it is in force. */
  readonly policy_fault: string | null;
  readonly audit: AuditView;
  readonly sessions: readonly SessionView[];
  readonly pools: readonly PoolView[];
  readonly caches: readonly CacheView[];
  /** Entities and bridges whose table or column is missing. */
  readonly out_of_service: readonly string[];
}

/** A Postgres session, or a running HTTP request. */
export interface SessionView {
  /** Process id of the session, or request id. */
  readonly id: string;
  readonly process: string;
  readonly surface: 'wire' | 'rest' | 'mcp';
  /** Postgres user; null for HTTP. */
  readonly user: string | null;
  /** Null until authenticated. */
  readonly subject: string | null;
  readonly chain: readonly string[];
  /** Token id, for revocation; null until authenticated. */
  readonly token_id: string | null;
  readonly application: string | null;
  readonly since: string;
  /** As in `pg_stat_activity`. */
  readonly state: string;
  readonly state_since: string;
  /** Redacted text of the running statement; null if none. */
  readonly shape: string | null;
  readonly fingerprint: string | null;
  /** Objects of a query on the fast path, whose text is not available. */
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
  /** Records not yet on disk. */
  readonly waiting: number;
  /** Records not yet covered by a signed checkpoint. */
  readonly unanchored: number;
  /** Why the log refuses records; null if it works. */
  readonly failing: string | null;
}

export type SessionCommand = 'cancel' | 'end';

/** What is in force now, and changes that need a restart; or why nothing changed. */
export type ReloadView =
  | { readonly reloaded: true; readonly now: readonly string[]; readonly kept: readonly string[] }
  | { readonly reloaded: false; readonly why: string };

/** Operations on all processes of the server. */
export interface ServerOperations {
  views(): Promise<readonly ProcessView[]>;
  command(id: string, what: SessionCommand): Promise<boolean>;
  /** Drains all processes, or resumes. */
  drain(on: boolean): Promise<void>;
  reload(): Promise<ReloadView>;
  stop(): void;
}

/** Revocation of tokens, for all gateways. */
export interface RevokingParts {
  readonly revocations: {
    readonly revoked: Pick<RevokedTokens, 'all'>;
    revoke(what: RevocationKey): Promise<RevocationMade>;
  };
}
