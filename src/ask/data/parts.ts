import type { Engine } from '../../engine/index.js';
import type { RightsSigner } from '../../row-security/index.js';
import type { Parsing } from '../parsing/index.js';
import type { Marks } from '../parsing/marks.js';
import type { RequestParts } from '../request/parts.js';
import type { ContentPlane } from './content-plane.js';
import type { MaskKeys } from './mask-keys.js';
import type { PlanCache } from './plan-cache.js';
import type { PermittedSets } from './runtime/permitted.js';

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

/** What makes plans of texts. */
export interface PlanningParts {
  readonly plans: PlanCache;
  readonly parsing: Parsing;
  readonly marks: Marks;
  readonly content: Pick<ContentPlane, 'hasDecoder'>;
}

/** What runs plans. */
export interface RunningParts {
  /** By connector name. */
  readonly engines: ReadonlyMap<string, Engine>;
  /** Runs what reads no relation, such as `SELECT 1`. */
  readonly defaultConnector: string;
  readonly maskKeys: MaskKeys;
  /** Signs what statements for a connector carry where row security stands behind it. */
  rowRights(connector: string): RightsSigner;
  readonly content: ContentPlane;
  readonly permitted: Pick<PermittedSets, 'areMany'>;
  readonly caps: Caps;
}

/** What answers questions about data. */
export interface AnswerParts extends RequestParts, PlanningParts, RunningParts {
  readonly content: ContentPlane;
}
