import { Component, type ReactNode } from 'react';
import { Empty } from './Empty.js';
import { isLoadFault, RELOAD_TITLE, RELOAD_WORDS } from './load-fault.js';

interface BoundaryProps {
  readonly children: ReactNode;
}

interface State {
  readonly title: string;
  readonly fault: string | null;
}

/** Keeps a fault of one screen to that screen. */
export class Boundary extends Component<BoundaryProps, State> {
  override state: State = { title: '', fault: null };

  static getDerivedStateFromError(error: unknown): State {
    if (isLoadFault(error)) return { title: RELOAD_TITLE, fault: RELOAD_WORDS };
    return {
      title: 'This page could not be loaded',
      fault: error instanceof Error ? error.message : String(error),
    };
  }

  override render(): ReactNode {
    const { title, fault } = this.state;
    if (fault === null) return this.props.children;
    return (
      <Empty title={title} text={fault}>
        <button type="button" onClick={() => location.reload()}>
          Load the page again
        </button>
      </Empty>
    );
  }
}
