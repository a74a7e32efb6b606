import './parts.css';
import type { ReactNode } from 'react';

interface FigureCardProps {
  readonly title: string;
  readonly figure: string;
  /** True if the figure needs attention. */
  readonly bad?: boolean;
  readonly children?: ReactNode;
}

/** A figure with its title and an explanation. */
export function FigureCard({ title, figure, bad = false, children }: FigureCardProps) {
  return (
    <div className={`box figure${bad ? ' figure-bad' : ''}`}>
      <p className="quiet">{title}</p>
      <p className="figure-value">{figure}</p>
      {children !== undefined && <p className="quiet">{children}</p>}
    </div>
  );
}
