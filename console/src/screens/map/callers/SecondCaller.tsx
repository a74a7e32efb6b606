import type { Caller } from '../../../api/caller.js';
import { Dialog } from '../../../parts/Dialog.js';
import { SignIn } from '../../../shell/SignIn.js';
import { useSession } from '../../../shell/session.js';

export interface SecondCallerProps {
  readonly open: boolean;
  readonly onClose: () => void;
  readonly onCaller: (caller: Caller) => void;
}

/**
 * Another caller to compare with. It is somebody whose token is at hand: nothing is shown here that the gateway does
 * not give one of the two tokens, and the second is known to this screen alone, until it is left.
 */
export function SecondCaller({ open, onClose, onCaller }: SecondCallerProps) {
  const { settings } = useSession();
  return (
    <Dialog title="Compare with another caller" open={open} onClose={onClose}>
      <p className="quiet">
        Both maps are drawn side by side. Each shows what its own token is given; the second token is kept
        nowhere.
      </p>
      <SignIn
        settings={settings}
        stored={false}
        onCaller={(caller) => {
          onCaller(caller);
          onClose();
        }}
      />
    </Dialog>
  );
}
