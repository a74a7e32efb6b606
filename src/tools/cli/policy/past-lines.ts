import { visible } from '../output.js';

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
