import { emit, explain, mayBeRedacted } from 'osl-compiler';
import { explainPlan, type Upstream } from '../../ask/data/explain.js';
import { type AnswerParts, type Question, versionsOf } from '../../ask/index.js';
import { toldOf } from './answer-members.js';
import { columnsOf, describedColumn } from './columns.js';
import { deprecatedIn } from './deprecated.js';

/** The plan of a question, as its answer has it. @throws QueryError */
export async function explainQuestion(
  service: AnswerParts,
  question: Question,
  wanted: Upstream | null,
  signal: AbortSignal,
): Promise<object> {
  const { plan, caller, upstream } = await explainPlan(service, question, wanted, signal);
  const mayReadSql = caller.access.adminRoles.size > 0;
  return {
    request_id: question.requestId,
    form: plan.form,
    plan: explain(plan),
    objects: plan.objects,
    grants: plan.grants,
    columns: columnsOf(plan).map((c) => describedColumn(c, mayBeRedacted(c))),
    ...toldOf(plan),
    ...deprecatedIn(plan.objects, caller.manifest),
    ...(mayReadSql ? { sql: emit(plan).sql } : {}),
    ...(upstream !== null ? { upstream } : {}),
    versions: versionsOf(caller),
  };
}
