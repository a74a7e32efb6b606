import { KeptTabs } from '../../parts/Tabs.js';
import { Drafts } from './DraftValidation.js';
import { Matrix } from './Matrix.js';
import { PolicyTestsPanel } from './PolicyTests.js';
import { ShadowPolicyPanel } from './ShadowPolicy.js';
import './policy.css';

const TABS = [
  { name: 'matrix', title: 'Who sees what', panel: () => <Matrix /> },
  { name: 'drafts', title: 'Drafts', panel: () => <Drafts /> },
  { name: 'tests', title: 'Tests', panel: () => <PolicyTestsPanel /> },
  { name: 'shadow', title: 'Shadow', panel: () => <ShadowPolicyPanel /> },
];

/** Policy screen: visibility matrix, drafts, policy tests and shadow policy. */
export function Screen() {
  return (
    <div className="tabbed">
      <KeptTabs label="Policy" name="policy" tabs={TABS} />
    </div>
  );
}
