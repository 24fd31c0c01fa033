// Who looks: a user's name, and a token where the server asks for one.

import { useState } from "preact/hooks";
import type { Settings } from "../settings.js";
import type { Words } from "../words.js";
import { Dialog } from "./dialog.js";

interface Props {
  words: Words;
  settings: Settings;
  close: () => void;
  save: (who: { user: string; token: string }) => void;
}

export function Who({ words, settings, close, save }: Props) {
  const [user, setUser] = useState(settings.user);
  const [token, setToken] = useState(settings.token);
  return (
    <Dialog
      title={words.who}
      close={close}
      submit={() => save({ user: user.trim(), token: token.trim() })}
    >
      <label>
        {words.user}
        <input
          required
          maxLength={128}
          autocomplete="username"
          value={user}
          onInput={(event) => setUser(event.currentTarget.value)}
        />
      </label>
      <label>
        {words.token}
        <input
          type="password"
          autocomplete="off"
          value={token}
          onInput={(event) => setToken(event.currentTarget.value)}
        />
        <small>{words.tokenHint}</small>
      </label>
      <div class="dialog-do">
        <button type="button" class="quiet" onClick={close}>
          {words.cancel}
        </button>
        <button type="submit" class="button">
          {words.save}
        </button>
      </div>
    </Dialog>
  );
}
