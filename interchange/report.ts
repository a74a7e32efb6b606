import type { TextRange } from '../src/model/manifest/index.js';

/**
 * What became of a construct that did not map as it stands. `lost`: nothing of it is in the manifest. `approximated`:
 * something is, and means nearly the same. `decision`: something was assumed that a person has to look at.
 */
export type LossKind = 'lost' | 'approximated' | 'decision';

/** One line of a loss report. */
export interface Loss {
  readonly kind: LossKind;
  /** `high` where it is about who may see what. */
  readonly severity: 'high' | 'normal';
  readonly file: string;
  readonly range: TextRange;
  /** JSON Pointer into the file; empty for the whole of it. */
  readonly path: string;
  /** One sentence, the author's own words in backticks. */
  readonly reason: string;
}

/** For people: `file:line:column: lost reason`, one a line. */
export function formatLoss(loss: Loss): string {
  const { line, column } = loss.range.start;
  const grave = loss.severity === 'high' ? ' (access)' : '';
  return `${loss.file}:${line}:${column}: ${loss.kind}${grave}: ${loss.reason}`;
}

/** `3 lost, 1 approximated`; `nothing was lost` for an empty report. */
export function countLosses(losses: readonly Loss[]): string {
  const counts = (['lost', 'approximated', 'decision'] as const).flatMap((kind) => {
    const n = losses.filter((l) => l.kind === kind).length;
    if (n === 0) return [];
    return [kind === 'decision' ? `${n} to decide` : `${n} ${kind}`];
  });
  return counts.length === 0 ? 'nothing was lost' : counts.join(', ');
}
