import { explain } from 'osl-compiler';
import { error, type Portal, type WireStatement } from '../../../wire/index.js';
import { type Body, explainPlan, prepare, type Question } from '../../ask/index.js';
import { dataRow } from '../../engine/index.js';
import { type ExplainNode, type PlanFormat, planFormat } from './explain-options.js';
import { planDocument, planLines } from './plan-text.js';
import type { SessionParts } from './session-parts.js';

const TYPE_OIDS = { text: 25, json: 114 } as const satisfies Record<PlanFormat, number>;

/**
 * `EXPLAIN [(options)] question` about data: the governed plan, as `osl explain` shows it. Nothing is run, and what the
 * database estimates is not told, for it counts hidden rows. `question` is the text behind the options, at its place.
 *
 * @throws WireError
 */
export async function explainStatement(
  session: SessionParts,
  node: ExplainNode,
  question: string,
  parameterOids: readonly number[],
): Promise<WireStatement> {
  if (node.query === undefined || !('SelectStmt' in node.query))
    throw error('0A000', 'EXPLAIN takes a question: SELECT, WITH or VALUES');
  const format = planFormat(node);
  const { service, caller, records, state, running } = session;
  const body: Body = { kind: 'wire', text: question };
  const first: Question = { ...caller.newCall(), body, parameterOids };
  const prepared = await records.translate(first.requestId, question, () => prepare(service, first));
  const unrun = records.hold(first, () => prepared.record());
  const told = (): Promise<readonly string[]> => {
    state.block.requireUsable();
    const call = records.unrun.release(unrun) ? first : caller.newCall();
    const asked: Question = { ...call, body, parameterOids, prepared };
    return running.cancellable((signal) =>
      records.translate(call.requestId, question, async () => {
        const { plan } = await explainPlan(service, asked, null, signal);
        const { objects, grants } = plan;
        const tellable = { plan: explain(plan), objects, grants };
        return format === 'json' ? [planDocument(tellable)] : planLines(tellable);
      }),
    );
  };
  return {
    parameterTypes: prepared.plan.clientOids,
    columns: [{ name: 'QUERY PLAN', typeOid: TYPE_OIDS[format], typeLength: -1, typeModifier: -1 }],
    open: () => linesPortal(told),
  };
}

/** One row for each line; they are worked out with the first portion. */
function linesPortal(told: () => Promise<readonly string[]>): Portal {
  let lines: readonly string[] | null = null;
  return {
    async fetch(maxRows, rows) {
      lines ??= await told();
      const portion = maxRows === 0 ? lines : lines.slice(0, maxRows);
      for (const line of portion) await rows.write(dataRow([line]));
      lines = lines.slice(portion.length);
      return { suspended: lines.length > 0, tag: 'EXPLAIN' };
    },
    close: () => undefined,
  };
}
