import type { ReactNode } from 'react';
import './parts.css';

interface EmptyProps {
  readonly title: string;
  readonly text?: string;
  readonly children?: ReactNode;
}

/** Placeholder for an empty view, with the reason and what to do. */
export function Empty({ title, text, children }: EmptyProps) {
  return (
    <div className="empty">
      <h2>{title}</h2>
      {text !== undefined && <p>{text}</p>}
      {children}
    </div>
  );
}
