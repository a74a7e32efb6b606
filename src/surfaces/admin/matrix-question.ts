import { type MatrixQuestion, MOST_ROWS, MOST_SUBJECTS } from '../../ask/why/matrix.js';
import { SIGHTS, type Sight } from '../../model/graph/index.js';
import { malformed } from '../rest/fault.js';
import { countParameter, listParameter, type Parameters, textParameter } from './parameters.js';

export const MATRIX_PARAMETERS = [
  'subject',
  'object',
  'sees',
  'after',
  'subjects',
  'from',
  'rows',
  'chain',
] as const;

const MOST_CHAIN = 16;

/** @throws QueryError E0511 */
export function matrixQuestion(given: Parameters): MatrixQuestion {
  const sees = listParameter(given, 'sees', SIGHTS.length);
  const chain = listParameter(given, 'chain', MOST_CHAIN);
  if (sees !== null && !sees.every(isSight)) throw malformed(`\`sees\` lists some of ${SIGHTS.join(', ')}`);
  if (chain !== null && new Set(chain).size < chain.length) throw malformed('`chain` names a subject twice');
  return {
    subject: textParameter(given, 'subject') ?? '',
    object: textParameter(given, 'object') ?? '',
    sees: sees === null ? null : sees.filter(isSight),
    after: textParameter(given, 'after'),
    subjects: countParameter(given, 'subjects', 1, MOST_SUBJECTS, MOST_SUBJECTS),
    from: countParameter(given, 'from', 0, 10_000_000, 0),
    rows: countParameter(given, 'rows', 1, MOST_ROWS, MOST_ROWS),
    chain,
  };
}

function isSight(text: string): text is Sight {
  return (SIGHTS as readonly string[]).includes(text);
}
