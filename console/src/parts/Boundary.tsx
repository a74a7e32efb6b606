import { Component, type ReactNode } from 'react';
import { Empty } from './Empty.js';

interface BoundaryProps {
  readonly children: ReactNode;
}

/** Keeps a fault of one screen to that screen. */
export class Boundary extends Component<BoundaryProps, { readonly fault: string | null }> {
  override state = { fault: null };

  static getDerivedStateFromError(error: unknown): { readonly fault: string } {
    return { fault: error instanceof Error ? error.message : String(error) };
  }

  override render(): ReactNode {
    const { fault } = this.state;
    if (fault === null) return this.props.children;
    return (
      <Empty title="This screen has a fault" text={fault}>
        <button type="button" onClick={() => location.reload()}>
          Load the page again
        </button>
      </Empty>
    );
  }
}
