import type { AuditLog } from '../../policy/audit/index.js';
import type { Limiter, PolicySnapshot, TokenVerifier } from '../../policy/index.js';
import type { ContentPlane } from '../ask/content-plane.js';
import type { MaskKeys } from '../ask/mask-keys.js';
import type { Parsing } from '../ask/parsing/index.js';
import type { Marks } from '../ask/parsing/marks.js';
import type { PlanCache } from '../ask/plan-cache.js';
import type { Probes } from '../ask/probes.js';
import type { PermittedSets } from '../ask/runtime/permitted.js';
import type { Strangers } from '../ask/strangers.js';
import type { Engine } from '../engine/index.js';
import type { Manifest } from '../model/manifest/index.js';
import type { Drafting } from '../publishing/drafting/index.js';
import type { Publishing } from '../publishing/store/index.js';
import type { RightsSigner } from '../row-security/index.js';
import type { Lineage } from './lineage/index.js';

/** The versions that serve together. A reload replaces the pair whole or not at all. */
export interface Model {
  readonly manifest: Manifest;
  /** Null while no policy is loaded: then everything is refused. */
  readonly snapshot: PolicySnapshot | null;
}

/** The policy file is missing or broken, and the last good policy serves meanwhile. Times are ms since 1970. */
export interface KeptPolicy {
  readonly since: number;
  /** From then on nothing serves. */
  readonly until: number;
}

/** What one result may cost. */
export interface Caps {
  /** Rows of one answer. */
  readonly rows: number;
  /** Bytes of one answer's rows. */
  readonly bytes: number;
  /** Passages of one facet that one Joint question brings, over all its keys. */
  readonly evidence: number;
  /** From the question to the last row. */
  readonly timeoutMs: number;
}

/** What the operator is told; never what a caller is told. */
export interface ServiceLog {
  info(message: string, fields?: Readonly<Record<string, unknown>>): void;
  warn(message: string, fields?: Readonly<Record<string, unknown>>): void;
  error(message: string, fields?: Readonly<Record<string, unknown>>): void;
}

/** How many entities and bridges no question reaches, as what they rest on is gone from the database. */
export function objectsOutOfService({ engines }: Pick<Service, 'engines'>): number {
  return [...engines.values()].reduce((sum, engine) => sum + engine.outOfService.relations.size, 0);
}

/** Everything that the spine needs, put together once at start. */
export interface Service {
  readonly tenant: string;
  /** Read once per request, so that a reload never shows half of itself. */
  model(): Model;
  /** Null while the policy that serves, if any does, is that of the file. */
  keptPolicy(): KeptPolicy | null;
  readonly publishing: Publishing;
  readonly verifier: TokenVerifier;
  readonly limiter: Limiter;
  readonly strangers: Strangers;
  readonly probes: Probes;
  readonly audit: AuditLog;
  /** By connector name. */
  readonly engines: ReadonlyMap<string, Engine>;
  /** Runs what reads no relation, such as `SELECT 1`. */
  readonly defaultConnector: string;
  readonly maskKeys: MaskKeys;
  /** Signs what statements for a connector carry where row security stands behind it. */
  rowRights(connector: string): RightsSigner;
  readonly plans: PlanCache;
  readonly parsing: Parsing;
  readonly drafting: Drafting;
  readonly marks: Marks;
  readonly content: ContentPlane;
  readonly permitted: Pick<PermittedSets, 'areMany'>;
  readonly caps: Caps;
  /** Null where nobody is told of lineage. */
  readonly lineage: Lineage | null;
  readonly log: ServiceLog;
}
