import type { ReactNode } from 'react';
import './parts.css';

interface EmptyProps {
  readonly title: string;
  readonly text?: string;
  readonly children?: ReactNode;
}

/** Says that there is nothing here, why, and what to do. */
export function Empty({ title, text, children }: EmptyProps) {
  return (
    <div className="empty">
      <h2>{title}</h2>
      {text !== undefined && <p>{text}</p>}
      {children}
    </div>
  );
}
