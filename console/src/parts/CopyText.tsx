import './parts.css';
import { useRef, useState } from 'react';

/** Text with a button that copies it; if the page has no access to the clipboard, the text is selected instead. */
export function CopyText({ label, text }: { readonly label: string; readonly text: string }) {
  const area = useRef<HTMLTextAreaElement>(null);
  const [said, setSaid] = useState('');
  const copy = (): void => {
    area.current?.select();
    // Browsers provide no clipboard to pages loaded over plain HTTP from another machine.
    const copied = navigator.clipboard?.writeText(text) ?? Promise.reject(new Error('no clipboard'));
    copied.then(
      () => setSaid('Copied.'),
      () => setSaid('Selected: press Ctrl C.'),
    );
  };
  return (
    <div className="stack copy-text">
      <textarea
        ref={area}
        readOnly
        aria-label={label}
        value={text}
        rows={Math.min(14, text.split('\n').length + 1)}
        spellCheck={false}
      />
      <div className="row">
        <button type="button" className="primary" onClick={copy}>
          Copy
        </button>
        <span role="status" className="quiet">
          {said}
        </span>
      </div>
    </div>
  );
}

export function download(name: string, content: string | Blob, type: string): void {
  const url = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 1_000);
}
