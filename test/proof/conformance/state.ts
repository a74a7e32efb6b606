import type { RuleId } from './contract.js';

/** Where the running product is asked. */
export type Surface = 'REST' | 'MCP over HTTP' | 'the command `osl`' | 'a started `osl serve`';

/** What is known of one rule of the contract. */
export type State =
  /** A check of this suite, under the rule's own id. */
  | { readonly kind: 'checked' }
  /** The check of another rule, which shows this one too. */
  | { readonly kind: 'same'; readonly as: RuleId }
  /** Tests elsewhere by their titles: what is answered, what is refused or withheld, and through what they ask. */
  | {
      readonly kind: 'tested';
      readonly through: Surface;
      readonly file: string;
      readonly positive: readonly string[];
      readonly negative: readonly string[];
    }
  /** Says nothing of what the service does, or nothing that could be observed today. */
  | { readonly kind: 'untestable'; readonly why: string }
  | { readonly kind: 'unmet'; readonly why: string };

export const checked: State = { kind: 'checked' };
export const sameAs = (as: RuleId): State => ({ kind: 'same', as });
export const tested = (
  through: Surface,
  file: string,
  positive: readonly string[],
  negative: readonly string[],
): State => ({ kind: 'tested', through, file: `test/${file}.test.ts`, positive, negative });
export const untestable = (why: string): State => ({ kind: 'untestable', why });
export const unmet = (why: string): State => ({ kind: 'unmet', why });
