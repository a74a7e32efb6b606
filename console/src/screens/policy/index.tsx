import { Tabs } from '../../parts/Tabs.js';
import { useKeptTab } from '../../parts/useKept.js';
import { Drafts } from './DraftValidation.js';
import { Matrix } from './Matrix.js';
import './policy.css';
import { PolicyTestsPanel } from './PolicyTests.js';
import { ShadowPolicyPanel } from './ShadowPolicy.js';

const TABS = [
  { name: 'matrix', title: 'Who sees what' },
  { name: 'drafts', title: 'Drafts' },
  { name: 'tests', title: 'Tests' },
  { name: 'shadow', title: 'Shadow' },
] as const;
type PolicyTab = (typeof TABS)[number]['name'];

/** Policy screen: visibility matrix, drafts, policy tests and shadow policy. */
export function Screen() {
  const [tab, setTab] = useKeptTab<PolicyTab>('policy', TABS);
  return (
    <div className="policy">
      <Tabs label="Policy" tabs={TABS} chosen={tab} onChoose={setTab}>
        <Panel tab={tab} />
      </Tabs>
    </div>
  );
}

function Panel({ tab }: { readonly tab: PolicyTab }) {
  switch (tab) {
    case 'matrix':
      return <Matrix />;
    case 'drafts':
      return <Drafts />;
    case 'tests':
      return <PolicyTestsPanel />;
    case 'shadow':
      return <ShadowPolicyPanel />;
    default: {
      const unknown: never = tab;
      return unknown;
    }
  }
}
