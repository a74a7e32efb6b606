import type { ReactNode } from 'react';

interface ScrollProps {
  readonly label: string;
  readonly children: ReactNode;
}

/** What may be wider than the page scrolls by itself, and by the keyboard. */
export function Scroll({ label, children }: ScrollProps) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: arrows scroll it.
    <section className="scroll" aria-label={label} tabIndex={0}>
      {children}
    </section>
  );
}
