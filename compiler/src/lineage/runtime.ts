import { assertNever } from '../errors/errors.js';
import {
  type GovernedPlan,
  type GovernedRuntime,
  type GovernedStore,
  stepsOfWalk,
} from '../govern/governed-plan.js';
import { stored } from '../govern/store/columns.js';
import type { Query } from '../plan/plan.js';
import { EVIDENCE, ORDINAL } from '../plan/runtime.js';
import { atLeast, deciding, indirect, type Transformation } from './influence.js';
import { widthOf } from './sources.js';

/** Traces values of a runtime relation back to their sources. */
export interface StepTrace {
  /** Returns the trace of the statement that computed a step. */
  step(plan: GovernedPlan): StepTrace;
  output(index: number, as: Transformation): void;
  named(name: string, as: Transformation): void;
  /** Follows the columns that determine the rows of `query`. */
  rows(query: Query): void;
}

/** Follows the sources of column `name` in rows that were computed before the statement. */
export function valueOfRuntime(
  runtime: GovernedRuntime | null,
  name: string,
  as: Transformation,
  trace: StepTrace,
): void {
  switch (runtime?.kind) {
    case undefined:
      return; // rows from the compiler itself, such as search terms
    case 'retrieval':
      if (runtime.store !== null) passageValue(runtime.store, name, as, trace);
      return;
    case 'traversal':
      // Keys are returned with their distance, which depends on every hop.
      for (const hop of runtime.hops) all(hop, atLeast(as, 'TRANSFORMATION'), trace);
      return;
    case 'hydration':
      for (const store of runtime.stores) hydratedValue(store, name, as, trace);
      return;
    case 'operated':
      operatedValue(runtime, name, as, trace);
      return;
    default:
      assertNever(runtime);
  }
}

/** Follows the columns that determine which rows of this relation exist. */
export function rowsOfRuntime(runtime: GovernedRuntime | null, trace: StepTrace): void {
  switch (runtime?.kind) {
    case undefined:
      return;
    case 'retrieval':
      if (runtime.store === null) return;
      trace.step(runtime.store.passages).rows(runtime.store.passages.query);
      // Passages are ranked by their text, which therefore determines the ones that are returned.
      trace.step(runtime.store.passages).named(stored('text'), FILTER);
      return;
    case 'traversal':
      for (const step of stepsOfWalk(runtime)) {
        trace.step(step).rows(step.query);
        all(step, JOIN, trace);
      }
      return;
    case 'hydration':
      for (const { passages, derived } of runtime.stores) {
        for (const plan of derived === null ? [passages] : [passages, derived])
          trace.step(plan).rows(plan.query);
      }
      return;
    case 'operated':
      trace.step(runtime.rows).rows(runtime.rows.query);
      return;
    default:
      assertNever(runtime);
  }
}

const FILTER = indirect('FILTER');
const JOIN = indirect('JOIN');

const CITED = ['source', 'doc_id', 'chunk_id', 'start_char', 'end_char', 'sha256'] as const;

function passageValue(store: GovernedStore, name: string, as: Transformation, trace: StepTrace): void {
  const { passages, redacts } = store;
  const step = trace.step(passages);
  const changed = atLeast(as, 'TRANSFORMATION');
  const served = redacts ? atLeast(as, 'TRANSFORMATION', true) : as;
  switch (name) {
    case 'text':
      step.named(stored(name), served);
      break;
    case 'redacted_fields':
      step.named(stored(name), as);
      break;
    case 'cite':
      for (const part of CITED) step.named(stored(part), changed);
      break;
    case 'score':
      step.named(stored('text'), changed);
      break;
    case ORDINAL:
      step.named(stored('text'), deciding(as, 'SORT'));
      break;
    default:
      // Metadata of the passage. A name that is not in the store is an operator's column, computed from the text.
      if (passages.outputs.some((o) => o.name === name))
        step.named(name, name === store.facet.entityKey ? as : served);
      else step.named(stored('text'), atLeast(served, 'TRANSFORMATION'));
  }
}

function operatedValue(
  { relation, rows }: Extract<GovernedRuntime, { kind: 'operated' }>,
  name: string,
  as: Transformation,
  trace: StepTrace,
): void {
  if (name === ORDINAL) return;
  const made = relation.operators.find((o) => o.column === name);
  const place = Number((made?.of ?? name).slice(1)) - relation.operators.length;
  trace.step(rows).output(place - 1, made === undefined ? as : atLeast(as, 'TRANSFORMATION'));
}

function hydratedValue(store: GovernedStore, name: string, as: Transformation, trace: StepTrace): void {
  const { facet, passages, derived, redacts } = store;
  const changed = atLeast(as, 'TRANSFORMATION');
  const step = trace.step(passages);
  if (name === 'key') step.named(facet.entityKey, as);
  if (name === EVIDENCE) {
    step.named(stored('text'), atLeast(changed, 'TRANSFORMATION', redacts));
    for (const part of CITED) step.named(stored(part), changed);
  }
  if (derived !== null && facet.derived.some((d) => d.name === name)) {
    trace.step(derived).named(stored('value'), changed);
  }
}

function all(plan: GovernedPlan, as: Transformation, trace: StepTrace): void {
  const step = trace.step(plan);
  for (let i = 0; i < widthOf(plan.query); i++) step.output(i, as);
}
