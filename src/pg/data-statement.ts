import { type GovernedPlan, lengthOf, oidOf, queryError } from 'osl-compiler';
import type { Bind, ColumnDescription, FetchResult, Portal, RowWriter, Statement } from '../../wire/index.js';
import type { RowSink } from '../engine/index.js';
import type { Answer, Delivery } from '../spine/index.js';
import { eachDataRow } from './data-row.js';

/** Runs one question with these rows wanted; the session knows who asks and what. */
export type Run = (delivery: Omit<Delivery, 'signal'>) => Promise<Answer>;

/** Bytes of rows that one portal may hold back for later fetches. */
const PORTAL_BYTES = 64 * 1_048_576;

/** A statement that reads data. Its plan describes it; each run decides anew. */
export function dataStatement(plan: GovernedPlan, run: Run): Statement {
  return {
    parameterTypes: plan.clientTypes.map(oidOf),
    columns: plan.outputs.map(columnOf),
    open: (bind) => new DataPortal(plan, bind, run),
  };
}

function columnOf(output: GovernedPlan['outputs'][number]): ColumnDescription {
  return {
    name: output.name,
    typeOid: oidOf(output.type),
    typeLength: lengthOf(output.type),
    typeModifier: -1,
  };
}

/**
 * One run of a data statement. Rows go straight through where all are wanted; where the client takes them in
 * portions they are kept, up to a bound, since the upstream session is not held for it.
 */
class DataPortal implements Portal {
  readonly #described: GovernedPlan;
  readonly #bind: Bind;
  readonly #run: Run;
  #held: Uint8Array[] | null = null;
  #taken = 0;

  constructor(described: GovernedPlan, bind: Bind, run: Run) {
    this.#described = described;
    this.#bind = bind;
    this.#run = run;
  }

  async fetch(maxRows: number, rows: RowWriter): Promise<FetchResult> {
    if (this.#held === null && maxRows === 0) {
      const answer = await this.#answer({ write: (bytes) => rows.write(bytes) });
      return { suspended: false, tag: `SELECT ${answer.rows}`, ...noticesOf(answer) };
    }
    const held = this.#held ?? (await this.#hold());
    const end = maxRows === 0 ? held.length : Math.min(held.length, this.#taken + maxRows);
    const portion = held.slice(this.#taken, end);
    this.#taken = end;
    for (const row of portion) await rows.write(row);
    return { suspended: end < held.length, tag: `SELECT ${portion.length}` };
  }

  close(): void {
    this.#held = [];
  }

  async #hold(): Promise<Uint8Array[]> {
    const held: Uint8Array[] = [];
    let bytes = 0;
    await this.#answer({
      write: (messages) => {
        bytes += messages.byteLength;
        if (bytes > PORTAL_BYTES)
          throw queryError('tooLarge', { what: 'the bytes of a portal', limit: PORTAL_BYTES });
        for (const row of eachDataRow(messages)) held.push(row.slice());
      },
    });
    this.#held = held;
    return held;
  }

  async #answer(sink: RowSink): Promise<Answer> {
    const { parameterFormats, parameters, resultFormats } = this.#bind;
    const values = parameters.map((bytes, i) => ({ format: parameterFormats[i] ?? (0 as const), bytes }));
    return this.#run({
      parameters: values,
      resultFormats,
      maxRows: 0,
      sink: (plan) => {
        requireSame(this.#described, plan);
        return sink;
      },
    });
  }
}

/** A reload between Parse and Execute may change what `*` means; the client was told of other columns then. */
function requireSame(described: GovernedPlan, plan: GovernedPlan): void {
  if (plan === described || shapeOf(plan) === shapeOf(described)) return;
  throw queryError('unresolvable', {
    detail: 'the columns of this prepared statement have changed since it was prepared',
    hint: 'prepare it again',
  });
}

function shapeOf({ outputs, clientTypes }: GovernedPlan): string {
  return JSON.stringify([clientTypes, outputs.map((o) => [o.name, o.type])]);
}

function noticesOf(answer: Answer): Pick<FetchResult, 'notices'> {
  const partial = answer.plan.partialColumns;
  const messages = [
    ...(partial.length === 0
      ? []
      : [`${partial.join(', ')}: computed over values of which some are masked for you`]),
    ...(answer.clipped ? ['a step of the query found more than its cap, so rows are missing'] : []),
    ...answer.errors.map((e) => `an operator failed for passage ${e.chunkId}: ${e.reason}`),
  ];
  return { notices: messages.map((message) => ({ severity: 'NOTICE', sqlstate: '01000', message })) };
}
