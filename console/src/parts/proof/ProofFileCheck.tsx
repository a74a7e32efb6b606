import { type ChangeEvent, type DragEvent, useId, useRef, useState } from 'react';
import { Empty } from '../Empty.js';
import { FactList } from '../FactList.js';
import { formatTime } from '../load/format.js';
import { useKept } from '../useKept.js';
import { checkProof, type ProofCheck, proofsIn } from './proof.js';
import './proof.css';

/** Proofs given by the user. `name` is the name of the file they were read from; null if they were pasted. */
interface GivenProofs {
  readonly name: string | null;
  readonly text: string;
}

/** Maximum size in bytes of a file with proofs. The proof of one record takes a few kilobytes. */
const MOST_BYTES = 4_000_000;

/** Checks receipts and proofs, pasted or from a file, with a key obtained from elsewhere. Nothing is sent over the network. */
export function ProofFileCheck() {
  const id = useId();
  const [keys, setKeys] = useKept('proof-key', '');
  const [given, setGiven] = useState<GivenProofs | null>(null);
  const [fault, setFault] = useState<string | null>(null);
  const [verdicts, setVerdicts] = useState<readonly ProofCheck[]>([]);
  /** The latest check; the verdicts of an earlier one that takes longer belong to other proofs or another key. */
  const latest = useRef({});
  const check = async (proofs: GivenProofs | null, by: string): Promise<void> => {
    const own = {};
    latest.current = own;
    setVerdicts([]);
    if (proofs === null || by.trim() === '') return;
    const texts = proofsIn(proofs.text);
    const checked = await Promise.all(
      (texts.length === 0 ? [''] : texts).map((text) => checkProof(text, by)),
    );
    if (latest.current === own) setVerdicts(checked);
  };
  const give = async (proofs: GivenProofs | null): Promise<void> => {
    setFault(null);
    setGiven(proofs);
    await check(proofs, keys);
  };
  const take = async (file: File | undefined): Promise<void> => {
    if (file === undefined) return;
    setFault(null);
    if (file.size > MOST_BYTES) {
      setFault(`${file.name} is too large to be a proof`);
      return;
    }
    const text = await file.text().catch(() => null);
    if (text === null) {
      setFault(`${file.name} cannot be read`);
      return;
    }
    await give({ name: file.name, text });
  };
  const drop = (event: DragEvent): void => {
    event.preventDefault();
    void take(event.dataTransfer.files[0]);
  };
  return (
    <div className="stack wide pad check">
      <label htmlFor={`${id}-key`}>
        <h2>The key</h2>
        <span className="quiet">checkpoint.vkey, as it was kept elsewhere; of several chains one a line</span>
      </label>
      <textarea
        id={`${id}-key`}
        rows={2}
        value={keys}
        placeholder="osl-audit/…+…+…"
        spellCheck={false}
        onChange={(event) => {
          setKeys(event.target.value);
          void check(given, event.target.value);
        }}
      />
      {/* biome-ignore lint/a11y/noStaticElementInteractions: the input inside handles the keyboard. */}
      <div className="row drop" onDragOver={(event) => event.preventDefault()} onDrop={drop}>
        <label htmlFor={`${id}-file`} className="button">
          Choose a proof
        </label>
        <input
          id={`${id}-file`}
          type="file"
          className="hidden"
          onChange={(event: ChangeEvent<HTMLInputElement>) => void take(event.target.files?.[0])}
        />
        <span className="quiet">{given?.name ?? 'or drop the file here'}</span>
      </div>
      <label htmlFor={`${id}-text`}>Or paste a receipt</label>
      <textarea
        id={`${id}-text`}
        rows={4}
        value={given?.name === null ? given.text : ''}
        placeholder="c2sp.org/tlog-proof@v1 …"
        spellCheck={false}
        onChange={({ target: { value } }) =>
          void give(value.trim() === '' ? null : { name: null, text: `${value.trimEnd()}\n` })
        }
      />
      {fault !== null && <p role="alert">{fault}</p>}
      {given !== null && keys.trim() === '' && (
        <p role="status">Now the key: without it nothing is proved.</p>
      )}
      {verdicts.map((verdict, i) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: proofs are identified by position.
        <Verdict key={i} verdict={verdict} />
      ))}
      {given === null && (
        <Empty
          title="Checked in your browser; nothing is sent"
          text="The browser hashes the record, follows the proof to the signed root and verifies the signature."
        />
      )}
    </div>
  );
}

export function Verdict({ verdict }: { readonly verdict: ProofCheck }) {
  const { ok, steps, record, checkpoint } = verdict;
  return (
    <div className={`proof ${ok ? 'proof-good' : 'proof-bad'}`} role="status">
      <p className="proof-title">{ok ? titleOf(record) : 'Not proved'}</p>
      <ol>
        {steps.map((step) => (
          <li key={step.what}>
            <span aria-hidden="true">{step.ok ? '✓' : '✗'}</span>
            <span className="hidden">{step.ok ? 'good: ' : 'not good: '}</span>
            {step.what}, <span className="quiet">{step.detail}</span>
          </li>
        ))}
      </ol>
      {checkpoint !== null && checkpoint.time !== null && (
        <p className="quiet">
          Signed {formatTime(checkpoint.time)} over {checkpoint.size} records
        </p>
      )}
      {record !== null && <Facts record={record} />}
      {record !== null && (
        <details>
          <summary>The record</summary>
          <pre>{JSON.stringify(record, null, 2)}</pre>
        </details>
      )}
    </div>
  );
}

const FACTS = [
  ['caller', 'chain'],
  ['answered', 'ts'],
  ['objects', 'objects'],
  ['rows', 'rows'],
] as const;

/** Shows the caller, time, objects, number of rows and masked columns stated in a receipt. */
function Facts({ record }: { readonly record: NonNullable<ProofCheck['record']> }) {
  const { receipt } = record;
  if (typeof receipt !== 'object' || receipt === null || !('masked' in receipt)) return null;
  const words = (value: unknown): string =>
    Array.isArray(value) ? value.join(', ') || 'nothing' : String(value);
  const facts = FACTS.map(([title, name]) => [title, words(record[name])] as const);
  return <FactList facts={[...facts, ['masked', words(receipt.masked)]]} />;
}

function titleOf(record: ProofCheck['record']): string {
  const kind = String(record?.['kind'] ?? 'record');
  return `Proved: the ${kind} is record ${String(record?.['seq'] ?? '?')} of the log`;
}
