import { useCallback, useEffect, useState } from 'react';
import { usePlace } from '../../shell/routes.js';

/** Language of a query: OSL-SQL, or SQL over tables. */
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
 * The query being edited. It is stored in the tab, so it survives a reload and a sign-in. A link (`#/ask?q=…`)
 * replaces it but does not run it.
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
    // Removes the link, so that a reload restores what was typed since.
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

/** Link to a query. The query follows `#`, so it is not sent to any server. */
export function linkTo({ text, kind }: QuestionDraft, origin: string): string {
  const parameters = new URLSearchParams({ q: text, ...(kind === 'sql' && { kind }) });
  return `${origin}/console/#/ask?${parameters}`;
}
