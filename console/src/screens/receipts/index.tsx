import { ProofFileCheck } from '../../parts/proof/ProofFileCheck.js';

/** Screen that checks receipts, open to everyone: recipients of receipts need not be administrators. */
export function Screen() {
  return <ProofFileCheck />;
}
