import type { RuleId } from './contract.js';

/** Where the running product is asked. */
export type Surface = 'REST' | 'MCP over HTTP' | 'the command `osl`' | 'a started `osl serve`';

/** What is known of one rule of the contract. */
export type State =
  /** A check of this suite, under the rule's own id. */
  | { readonly kind: 'checked' }
  /** The check of another rule, which shows this one too. */
  | { readonly kind: 'same'; readonly as: RuleId }
  /** Tests elsewhere, by their titles, and what they ask through. */
  | {
      readonly kind: 'tested';
      readonly through: Surface;
      readonly file: string;
      readonly titles: readonly string[];
    }
  /** Says nothing of what the service does, or nothing that could be observed today. */
  | { readonly kind: 'untestable'; readonly why: string }
  | { readonly kind: 'unmet'; readonly why: string };

export const checked: State = { kind: 'checked' };
export const sameAs = (as: RuleId): State => ({ kind: 'same', as });
export const tested = (through: Surface, file: string, ...titles: readonly string[]): State => ({
  kind: 'tested',
  through,
  file: `test/${file}.test.ts`,
  titles,
});
export const untestable = (why: string): State => ({ kind: 'untestable', why });
export const unmet = (why: string): State => ({ kind: 'unmet', why });
