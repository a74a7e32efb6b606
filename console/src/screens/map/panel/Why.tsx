import { useEffect, useState } from 'react';
import { getJson } from '../../../api/http.js';
import { ErrorBox } from '../../../parts/ErrorBox.js';
import { useSession } from '../../../shell/session.js';

/** The answer of `GET /osl/why`. */
interface WhyAnswer {
  readonly masked_as: string | null;
  readonly because: readonly string[];
}

/** Why the caller sees something as it does: asked of the gateway, and shown in its words. */
export function Why({ object }: { readonly object: string }) {
  const { caller } = useSession();
  const [answer, setAnswer] = useState<WhyAnswer | null>(null);
  const [fault, setFault] = useState<unknown>(null);
  useEffect(() => {
    const leaving = new AbortController();
    setAnswer(null);
    setFault(null);
    getJson<WhyAnswer>(caller, `/osl/why?object=${encodeURIComponent(object)}`, {
      signal: leaving.signal,
    }).then(setAnswer, (error: unknown) => {
      if (!leaving.signal.aborted) setFault(error);
    });
    return () => leaving.abort();
  }, [caller, object]);
  if (fault !== null) return <ErrorBox error={fault} />;
  if (answer === null) return <p className="quiet">asking …</p>;
  return (
    <ul className="map-why">
      {answer.masked_as !== null && <li>shown as {plain(answer.masked_as)}</li>}
      {answer.because.map((line) => (
        <li key={line}>{line}</li>
      ))}
    </ul>
  );
}

/** The gateway quotes in backticks, as its terminal does. */
function plain(text: string): string {
  return text.replaceAll('`', '');
}
