import type { Sight } from '../../api/admin-types.js';

/** What of the matrix is wanted. */
export interface MatrixFilter {
  readonly object: string;
  readonly subject: string;
  readonly sees: Sight | '' | 'anything';
  /** Subjects with commas, root first: somebody who acts for somebody. */
  readonly chain: string;
}

export const NO_FILTER: MatrixFilter = { object: '', subject: '', sees: '', chain: '' };

/** The parameters of the request, without pages. */
export function parametersOf({
  object,
  subject,
  sees,
  chain,
}: MatrixFilter): Readonly<Record<string, string>> {
  return {
    object: object.trim(),
    subject: subject.trim(),
    sees: sees === 'anything' ? 'clear,partly_masked,masked,aggregates' : sees,
    chain: membersOf(chain).join(','),
  };
}

/** `user:a > agent:b` or with commas. */
export function membersOf(chain: string): readonly string[] {
  return chain
    .split(/[,>→]/)
    .map((one) => one.trim())
    .filter((one) => one !== '');
}
