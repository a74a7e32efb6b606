import { useCallback, useEffect, useState } from 'react';
import { usePlace } from '../../shell/routes.js';

/** True if a text is OSL-SQL, or SQL over tables. */
export type QuestionLanguage = 'osql' | 'sql';

export interface QuestionDraft {
  readonly text: string;
  readonly kind: QuestionLanguage;
}

const KEY = 'osl.draft';

function stored(): QuestionDraft {
  try {
    const read: unknown = JSON.parse(sessionStorage.getItem(KEY) ?? 'null');
    if (typeof read !== 'object' || read === null || !('text' in read)) return { text: '', kind: 'osql' };
    const kind = 'kind' in read && read.kind === 'sql' ? 'sql' : 'osql';
    return { text: String(read.text), kind };
  } catch {
    return { text: '', kind: 'osql' };
  }
}

/**
 * Query being written. The tab keeps it across a reload and a sign-in. A link (`#/ask?q=…`) replaces it, but runs
 * nothing.
 */
export function useDraft(taken: (text: string) => void) {
  const [draft, setDraft] = useState<QuestionDraft>(() => linked(location.hash) ?? stored());
  const { parameters } = usePlace();
  const query = parameters.get('q');
  const change = useCallback((next: Partial<QuestionDraft>) => setDraft((now) => ({ ...now, ...next })), []);
  useEffect(() => sessionStorage.setItem(KEY, JSON.stringify(draft)), [draft]);
  useEffect(() => {
    if (query === null) return;
    const next = linked(location.hash);
    if (next === null) return;
    setDraft(next);
    taken(next.text);
    // So that a reload brings back what was written since.
    history.replaceState(null, '', '#/ask');
  }, [query, taken]);
  return { draft, change };
}

/** Query in a link; null if it contains none. */
export function linked(hash: string): QuestionDraft | null {
  const parameters = new URLSearchParams(hash.split('?', 2)[1] ?? '');
  const text = parameters.get('q');
  return text === null ? null : { text, kind: parameters.get('kind') === 'sql' ? 'sql' : 'osql' };
}

/** Link to a query, which follows `#` and is therefore not sent to any server. */
export function linkTo({ text, kind }: QuestionDraft, origin: string): string {
  const parameters = new URLSearchParams({ q: text, ...(kind === 'sql' && { kind }) });
  return `${origin}/console/#/ask?${parameters}`;
}
