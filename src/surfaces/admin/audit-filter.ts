import type { AuditQuery } from '../../../policy/audit/index.js';
import { type Parameters, textParameter, timeParameter, wordParameter } from './parameters.js';

export const KINDS = ['decision', 'outcome', 'event'] as const;
export const DECISIONS = ['allow', 'deny', 'error'] as const;
export const OUTCOMES = ['ok', 'error', 'cancelled', 'truncated', 'unknown'] as const;
export const SURFACES = ['rest', 'wire', 'mcp', 'cli', 'system'] as const;

export const FILTER_PARAMETERS = [
  'subject',
  'object',
  'name',
  'since',
  'until',
  'kind',
  'action',
  'surface',
  'decision',
  'outcome',
  'code',
  'request',
] as const;

/** What records are looked for. @throws QueryError E0511 */
export function auditFilter(given: Parameters): AuditQuery {
  const found = {
    subject: textParameter(given, 'subject'),
    object: textParameter(given, 'object'),
    name: textParameter(given, 'name'),
    since: timeParameter(given, 'since'),
    until: timeParameter(given, 'until'),
    kind: wordParameter(given, 'kind', KINDS),
    action: textParameter(given, 'action'),
    surface: wordParameter(given, 'surface', SURFACES),
    decision: wordParameter(given, 'decision', DECISIONS),
    outcome: wordParameter(given, 'outcome', OUTCOMES),
    code: textParameter(given, 'code'),
    requestId: textParameter(given, 'request'),
  };
  // Nothing but what was given: a member without a value would match nothing.
  return Object.fromEntries(Object.entries(found).filter(([, value]) => value !== null)) as AuditQuery;
}
