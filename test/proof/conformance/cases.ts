import type { RuleId } from './contract.js';
import { RULES } from './levels.js';
import { NO_NEGATIVE, stateOf } from './states.js';
import type { Exchange } from './world.js';

/** What each check asked, by its rule. */
export type Exchanges = ReadonlyMap<string, readonly Exchange[]>;

/** Cases of a rule: what it promises is answered, and what it forbids is refused or withheld. */
export interface Cases {
  readonly positive: number;
  readonly negative: number;
}

/** The cases of what proves a rule, each counted once; null of a rule that nothing proves. */
export function casesOf(id: RuleId, exchanges: Exchanges): Cases | null {
  const state = stateOf(id);
  switch (state.kind) {
    case 'checked':
      return counted(exchanges.get(id) ?? []);
    case 'same':
      return counted(exchanges.get(state.as) ?? []);
    case 'tested':
      return { positive: state.positive.length, negative: state.negative.length };
    case 'untestable':
    case 'unmet':
      return null;
  }
}

function counted(exchanges: readonly Exchange[]): Cases {
  const distinct = (negative: boolean): number =>
    new Set(
      exchanges
        .filter(({ kind }) => (kind !== 'answered') === negative)
        .map(({ request, answer }) => `${request} → ${answer}`),
    ).size;
  return { positive: distinct(false), negative: distinct(true) };
}

/** What is missing or out of date: proved rules without a positive or a negative case, and reasons that are not needed. */
export function gapsIn(exchanges: Exchanges): readonly string[] {
  return RULES.flatMap((id) => {
    const cases = casesOf(id, exchanges);
    const reason = NO_NEGATIVE[id];
    if (cases === null) return reason === undefined ? [] : [`${id} is not proved, and has a reason`];
    return [
      ...(cases.positive > 0 ? [] : [`${id} has no positive case`]),
      ...(cases.negative > 0 || reason !== undefined ? [] : [`${id} has no negative case`]),
      ...(cases.negative > 0 && reason !== undefined ? [`${id} has a negative case, and a reason`] : []),
    ];
  });
}
