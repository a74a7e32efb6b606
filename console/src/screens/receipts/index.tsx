import { ProofFileCheck } from '../../parts/proof/ProofFileCheck.js';

/** Screen that checks receipts, open to everyone: whoever is shown a receipt need not be an administrator. */
export function Screen() {
  return <ProofFileCheck />;
}
