import {
  arrayText,
  type GovernedPlan,
  type GovernedSample,
  type GovernedStore,
  governSample,
  queryError,
  type TypeName,
} from 'osl-compiler';
import { isEmpty } from '../../../policy/index.js';
import { MemoryShare } from '../../engine/index.js';
import type { RequestCall } from '../request/call.js';
import type { Caller } from '../request/caller.js';
import { respond } from '../request/respond.js';
import type { StoredPassage } from './content-plane.js';
import { entityCounter } from './entity-counts.js';
import type { AnswerParts, StepInput } from './parts.js';
import { StandbyUse } from './query-answer.js';
import { citeOf, passageOf } from './runtime/passage.js';
import type { TextRow } from './runtime/step.js';
import { step } from './runtime/step.js';

export interface SampleRequest {
  readonly kind: 'table' | 'facet';
  readonly name: string;
  /** Number of rows, from 1 to 100. */
  readonly limit: number;
}

/** A cell in text format; `redacted` if the caller may not read it, even if it is NULL. */
export type SampleCell = string | null | { readonly redacted: true };

interface SampleColumn {
  readonly name: string;
  readonly type: TypeName;
  /** True for the entity key of a chunk. */
  readonly passageKey?: boolean;
}

export interface Sample {
  readonly requestId: string;
  readonly columns: readonly SampleColumn[];
  /** The rows, each with its cells in column order. */
  readonly rows: readonly (readonly SampleCell[])[];
  /** `<entity>.<column>` for each column masked in at least one row, or computed from such a column. */
  readonly redactedColumns: readonly string[];
  /** Fields redacted in at least one sampled chunk. */
  readonly redactedFields: readonly string[];
  /** Memory share of the rows, which the consumer must release. */
  readonly memory: MemoryShare;
}

const REDACTED: SampleCell = Object.freeze({ redacted: true });

/**
 * Returns sample rows of an object. Sampling has a separate rate limit.
 *
 * @throws QueryError E0241, E0254, E2101 and the errors of `ask`
 */
export function sample(
  parts: AnswerParts,
  call: RequestCall,
  request: SampleRequest,
  signal: AbortSignal | null,
): Promise<Sample> {
  return respond<GovernedSample, Sample>(parts, call, {
    action: 'sample',
    target: request,
    bucket: 'sample',
    decide: (caller, record) => {
      const { access, manifest } = caller;
      // As the contract requires, a caller without grants gets an empty sample of a declared facet.
      if (isEmpty(access) && request.kind === 'table') throw queryError('noAccess', {});
      const governed = governSample(request.kind, request.name, manifest.catalog, access);
      record.setObjects(governed);
      const plan = planOfSample(governed);
      if (plan !== null) entityCounter(parts, caller, plan);
      return governed;
    },
    signal,
    readPlan: planOfSample,
    countRows: ({ rows }) => ({ rows: rows.length, truncated: false }),
    answer: async (governed, caller) => {
      const memory = new MemoryShare(parts.memory, caller.identity.subject);
      try {
        const rows = await rowsOf(parts, caller, governed, request, signal, memory);
        return Object.freeze({ requestId: call.requestId, ...rows, memory });
      } catch (error) {
        memory.release();
        throw error;
      }
    },
  });
}

type SampleRows = Omit<Sample, 'requestId' | 'memory'>;

async function rowsOf(
  parts: AnswerParts,
  caller: Caller,
  governed: GovernedSample,
  request: SampleRequest,
  signal: AbortSignal | null,
  memory: MemoryShare,
): Promise<SampleRows> {
  const { source } = governed;
  const plan = planOfSample(governed);
  if (plan === null) return EMPTY_SAMPLE;
  if (source.kind === 'facet' && source.store !== null)
    await parts.content.ready(source.store.facet.name, source.store.version);
  const input: StepInput = {
    parts,
    caller,
    plan,
    parameters: [],
    signal,
    snapshots: null,
    standby: new StandbyUse(null, true),
    whole: true,
    memory,
  };
  const args = new Map([['limit', `${request.limit}`]]);
  const counter = entityCounter(parts, caller, plan);
  const { rowBytes } = parts.memory.bounds;
  const { rows } = await step(counter?.plan ?? plan, args, input, request.limit + 1, rowBytes);
  await counter?.countRows(rows);
  return source.kind === 'facet' && source.store !== null
    ? chunks(rows, governed, source.store)
    : table(request.name, rows, governed, plan);
}

/** Returns the plan that reads the sample; null if the caller has no grant. */
function planOfSample({ source }: GovernedSample): GovernedPlan | null {
  return source.kind === 'table' ? source.plan : (source.store?.passages ?? null);
}

const EMPTY_SAMPLE: SampleRows = Object.freeze({
  columns: [],
  rows: [],
  redactedColumns: [],
  redactedFields: [],
});

function table(
  name: string,
  rows: readonly TextRow[],
  { columns }: GovernedSample,
  { redactedColumns }: GovernedPlan,
): SampleRows {
  const redacted = columns.filter((c) => c.visible !== null).map((c) => `${name}.${c.name}`);
  return {
    columns,
    rows: rows.map((row) => columns.map((c) => cellOf(row, c))),
    redactedColumns: [...new Set([...redactedColumns, ...redacted])].sort(),
    redactedFields: [],
  };
}

function cellOf(row: TextRow, { name, visible }: GovernedSample['columns'][number]): SampleCell {
  if (visible !== null && row.get(visible) !== 't') return REDACTED;
  return row.get(name) ?? null;
}

/** The columns that every chunk has in addition to its key and metadata. */
const TEXT: SampleColumn = { name: 'text', type: 'text' };
const CITE: SampleColumn = { name: 'cite', type: 'jsonb' };
const FIELDS: SampleColumn = { name: 'redacted_fields', type: 'text[]' };

function chunks(rows: readonly TextRow[], { columns }: GovernedSample, store: GovernedStore): SampleRows {
  const passages = rows.map((row) => passageOf(row, store));
  const shown = new Set(columns.map((c) => c.name));
  const redactedOf = ({ redactedFields }: StoredPassage): readonly string[] =>
    redactedFields.filter((name) => shown.has(name));
  return {
    columns: [TEXT, ...columns.map((c) => chunkColumn(c, store)), CITE, FIELDS],
    rows: passages.map((passage) => {
      const redacted = redactedOf(passage);
      const cells = columns.map(
        ({ name }): SampleCell => (redacted.includes(name) ? REDACTED : (passage.fields.get(name) ?? null)),
      );
      return [passage.text, ...cells, JSON.stringify(citeOf(passage, store)), arrayText(redacted)];
    }),
    redactedColumns: [],
    redactedFields: [...new Set(passages.flatMap(redactedOf))].sort(),
  };
}

function chunkColumn({ name, type }: SampleColumn, { facet }: GovernedStore): SampleColumn {
  return { name, type, passageKey: name === facet.entityKey };
}
