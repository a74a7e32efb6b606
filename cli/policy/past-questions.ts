import { compiledPolicy, type Otherwise, otherwiseUnder } from '../../src/model/authoring/index.js';
import type { Model } from '../../src/model/served-model.js';
import { type AuditFlags, onRecord, withLog } from '../audit/log.js';
import { timeOf } from '../audit/search.js';
import { visible } from '../output.js';

/** What reads data, or tells of them. */
const QUESTIONS: ReadonlySet<string> = new Set(['query', 'explain', 'sample', 'prepare', 'copy']);

/**
 * Holds the questions of the log since `flags.since` to a policy that would serve instead. Memory grows with callers and
 * objects, not with questions.
 *
 * @throws Failure where there is no log, or where it cannot be noted that it is read
 */
export async function pastQuestions(
  text: string,
  file: string,
  { manifest, snapshot: before }: Model,
  flags: AuditFlags & { readonly since: string },
): Promise<PastQuestions> {
  const since = timeOf('--since', flags.since);
  const after = compiledPolicy(text, file, manifest);
  const otherwise = before === null ? () => [] : otherwiseUnder({ manifest, before, after });
  const callers = new Map<string, PastCaller>();
  const counts = { asked: 0, otherwise: 0 };
  await withLog(flags, async (log) => {
    await onRecord(log, 'policy diff', { since });
    for await (const { action, chain, objects } of log.search({ since, kind: 'decision' }, false)) {
      if (!QUESTIONS.has(action) || objects.length === 0) continue;
      counts.asked++;
      const changes = otherwise({ chain, objects });
      if (changes.length > 0) counts.otherwise++;
      for (const change of changes) count(callers, chain, change);
    }
  });
  const most = [...callers.values()].sort((a, b) => b.questions - a.questions);
  return { since, ...counts, callers: most };
}

function count(callers: Map<string, PastCaller>, chain: readonly string[], change: Otherwise): void {
  const key = JSON.stringify([chain, change.object]);
  const questions = (callers.get(key)?.questions ?? 0) + 1;
  callers.set(key, { chain, ...change, questions });
}

/** Questions of the log, and which of them a policy would answer otherwise. */
export interface PastQuestions {
  /** RFC 3339, UTC. */
  readonly since: string;
  /** All that were asked since then about what is declared. */
  readonly asked: number;
  /** Of them, those that touched something which their caller would see otherwise. */
  readonly otherwise: number;
  /** By caller and object, those with most questions first. */
  readonly callers: readonly PastCaller[];
}

export interface PastCaller {
  readonly chain: readonly string[];
  readonly object: string;
  readonly questions: number;
  readonly loses: readonly string[];
  readonly gains: readonly string[];
  readonly terms: boolean;
}

export function pastLines({ since, asked, otherwise, callers }: PastQuestions): readonly string[] {
  const of = `${otherwise} of ${asked} question${asked === 1 ? '' : 's'} since ${since}`;
  return [
    asked === 0 ? `no question was asked since ${since}` : `${of} touched what would be seen otherwise`,
    ...callers.map((caller) => visible(`  ${callerLine(caller)}`)),
  ];
}

function callerLine({ chain, object, questions, loses, gains, terms }: PastCaller): string {
  const what = [
    ...(loses.length === 0 ? [] : [`loses ${loses.join(', ')}`]),
    ...(gains.length === 0 ? [] : [`gains ${gains.join(', ')}`]),
    ...(loses.length + gains.length === 0 && terms ? ['other rows, masks or conditions'] : []),
  ].join('; ');
  return `${questions} of ${chain.join(' → ')}: ${object}: ${what}`;
}
