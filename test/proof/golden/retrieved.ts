import type { Forms } from '../../language/forms/fixture.js';
import { at } from '../../language/forms/fixture.js';
import { type Case, field } from './cases.js';
import { broken } from './outcome.js';

/** What came of a case, below the rule: each statement that was sent with its values, rows, notices and the records. */
export class RetrievedCases {
  readonly #forms: Forms;
  /** Statements are numbered as they first come; a later one of the same text is its number alone. */
  readonly #numbers = new Map<string, number>();

  constructor(forms: Forms) {
    this.#forms = forms;
  }

  async told({ caller, query, values }: Case): Promise<readonly string[]> {
    const { fronts } = this.#forms;
    fronts.takeStatements();
    fronts.takeAudit();
    const more = values.length === 0 ? {} : { parameters: values };
    const { json, code, message, rows } = await this.#forms.ask(`user:${caller}`, query, more);
    const notices = at(json, 'notices');
    return [
      ...fronts.takeStatements().flatMap(({ sql, values: sent }) => this.#sent(sql, sent)),
      ...(code === '' ? [] : [field('error', `${code} ${message}`)]),
      ...(Array.isArray(notices) ? notices.map((notice) => field('notice', String(notice))) : []),
      ...rows.map((row) => field('row', JSON.stringify(Object.values(row)))),
      ...fronts.takeAudit().map((entry) => {
        const { kind, form, objects, decision, code, rows } = entry;
        return field('record', JSON.stringify({ kind, form, objects, decision, code, rows }));
      }),
    ];
  }

  #sent(sql: string, values: readonly unknown[]): readonly string[] {
    const known = this.#numbers.get(sql);
    const number = known ?? this.#numbers.size + 1;
    this.#numbers.set(sql, number);
    const text = known === undefined ? `[${number}] ${broken(sql)}` : `[${number}]`;
    return [field('sql', text), ...values.map((value, i) => field('', `$${i + 1} = ${shortened(value)}`))];
  }
}

/** A vector of a model is how many numbers it has; what is 64 digits of a hash is a few of them. */
function shortened(value: unknown): string {
  const text = JSON.stringify(value);
  const isVector = typeof value === 'string' && /^\[[-\d.,e]+\]$/.test(value);
  return isVector
    ? `[${value.split(',').length} numbers]`
    : text.replaceAll(/([0-9a-f]{8})[0-9a-f]{56}/g, '$1…');
}
