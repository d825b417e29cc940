import torch
from torch import Tensor


def masked_softmax(X: Tensor, valid_lens: Tensor | None) -> Tensor:
    anzahl, fragen, schluessel = X.shape
    # Halbe Genauigkeit: intern mit float32 rechnen, am Ende zurueck
    rechen = torch.float32 if X.dtype in (torch.float16, torch.bfloat16) else X.dtype
    werte = X.to(rechen)

    if valid_lens is None:
        gueltig = torch.ones(1, 1, schluessel, dtype=torch.bool, device=X.device)
    else:
        if valid_lens.shape == (anzahl,):
            laengen = valid_lens.reshape(anzahl, 1, 1)
        elif valid_lens.shape == (anzahl, fragen):
            laengen = valid_lens.unsqueeze(-1)
        else:
            raise ValueError(f"Form {tuple(valid_lens.shape)} passt nicht zu {tuple(X.shape)}")
        laengen = laengen.to(X.device, torch.float64)
        if bool((laengen > schluessel).any()):
            raise ValueError("eine Laenge ist groesser als die Zahl der Schluessel")
        gueltig = torch.arange(schluessel, device=X.device) < laengen

    # zuerst das Ungueltige wegwerfen, dann erst das Maximum
    unendlich = torch.full_like(werte, float("-inf"))
    hoechstes = torch.where(gueltig, werte, unendlich).detach().amax(-1, keepdim=True)
    hoechstes = torch.where(hoechstes.isinf(), torch.zeros_like(hoechstes), hoechstes)
    abstand = torch.where(gueltig, werte - hoechstes, torch.zeros_like(werte))
    zaehler = torch.where(gueltig, abstand.exp(), torch.zeros_like(werte))
    nenner = zaehler.sum(-1, keepdim=True)
    nenner = torch.where(nenner == 0, torch.ones_like(nenner), nenner)
    return (zaehler / nenner).to(X.dtype)
